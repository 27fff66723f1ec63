//! A knowledge base inside a program: learn, search, retrieve.
#![expect(clippy::print_stdout, reason = "an example shows what it does")]

use kb_store::{KnowledgeBase, Options, Search, Text};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let dir = tempfile::tempdir()?;
    let kb = KnowledgeBase::create(dir.path().join("notes.kbdb"), Options::new(std::time::SystemTime::now))?;
    kb.learn(&Text::markdown("# Pumps\n\n## Valves\n\nThe intake valve opens at six.\n"))?;
    let answer = kb.search(&Search::new("when does the valve open"))?;
    let best = &answer.hits[0];
    println!("{} ({:.0} %)", best.heading_path.join(" › "), best.confidence * 100.0);
    print!("{}", kb.retrieve_section(best.kbid)?.content);
    Ok(())
}
