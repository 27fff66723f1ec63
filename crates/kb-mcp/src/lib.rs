//! kb-mcp
