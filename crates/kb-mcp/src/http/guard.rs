//! Who may speak to the server: by the name it was reached under, the page that sent the request, and the token.
//!
//! A page in a browser can send requests to this machine, under any name that its owner lets point here. So a request
//! is served only under names that cannot be made to point here by others, and only for pages of this machine or of
//! origins that were named.
//!
//! **Invariant:** a server that other machines can reach has a token, and every request is refused before its body is
//! read if it does not carry it.

use std::net::{IpAddr, SocketAddr};

use super::wire::{Head, Refusal};
use crate::digest::sha256;

/// The shortest token that is taken.
pub(super) const LEAST_TOKEN: usize = 16;

/// What a request has to show.
#[derive(Debug)]
pub(super) struct Guard {
    is_local: bool,
    hosts: Vec<String>,
    origins: Vec<String>,
    /// The digest of the token, so that comparing takes as long whatever is sent.
    token: Option<String>,
}

impl Guard {
    pub(super) fn new(address: SocketAddr, hosts: &[String], origins: &[String], token: Option<&str>) -> Self {
        Self {
            is_local: address.ip().is_loopback(),
            hosts: hosts.iter().map(|host| host.to_ascii_lowercase()).collect(),
            origins: origins.iter().map(|origin| origin.trim_end_matches('/').to_ascii_lowercase()).collect(),
            token: token.map(|token| sha256(token.as_bytes())),
        }
    }

    /// Lets a request pass, or says why not.
    pub(super) fn check(&self, head: &Head) -> Result<(), Refusal> {
        let host = head.header("host")?.ok_or_else(|| Refusal::new(400, "the header `Host` is missing"))?;
        if !self.serves_host(host) {
            return Err(Refusal::new(403, "the server is not to be reached under this `Host`"));
        }
        if let Some(origin) = head.header("origin")?
            && !self.serves_origin(origin)
        {
            return Err(Refusal::new(403, "pages of this `Origin` are not served"));
        }
        let Some(wanted) = &self.token else { return Ok(()) };
        let given = head.header("authorization")?.and_then(|value| {
            let (scheme, token) = value.split_once(' ')?;
            scheme.eq_ignore_ascii_case("bearer").then(|| token.trim())
        });
        match given {
            Some(given) if sha256(given.as_bytes()) == *wanted => Ok(()),
            _ => Err(Refusal::new(401, "a bearer token is needed")),
        }
    }

    fn serves_host(&self, host: &str) -> bool {
        let name = without_port(host).to_ascii_lowercase();
        if self.hosts.contains(&name) || is_loopback(&name) {
            return true;
        }
        // An address is no name that somebody could make point here.
        !self.is_local && name.trim_start_matches('[').trim_end_matches(']').parse::<IpAddr>().is_ok()
    }

    fn serves_origin(&self, origin: &str) -> bool {
        let origin = origin.to_ascii_lowercase();
        let of_machine = origin
            .strip_prefix("http://")
            .or_else(|| origin.strip_prefix("https://"))
            .is_some_and(|host| is_loopback(without_port(host)));
        of_machine || self.origins.contains(&origin)
    }
}

/// Returns the name of `name:port`, with the brackets of an IPv6 address.
fn without_port(host: &str) -> &str {
    match host.rsplit_once(':') {
        Some((name, port)) if port.bytes().all(|byte| byte.is_ascii_digit()) => name,
        _ => host,
    }
}

fn is_loopback(name: &str) -> bool {
    let address = name.strip_prefix('[').and_then(|name| name.strip_suffix(']')).unwrap_or(name);
    name == "localhost" || address.parse::<IpAddr>().is_ok_and(|address| address.is_loopback())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn guard(address: &str) -> Guard {
        let own = |texts: &[&str]| texts.iter().map(|text| (*text).to_owned()).collect::<Vec<_>>();
        let (hosts, origins) = (own(&["KB.example"]), own(&["https://app.example/"]));
        Guard::new(address.parse().unwrap(), &hosts, &origins, None)
    }

    #[test]
    fn a_name_that_anybody_could_make_point_here_is_not_served() {
        let local = guard("127.0.0.1:80");
        for host in
            ["localhost", "localhost:8080", "127.0.0.1:1", "[::1]:8080", "127.9.9.9", "LOCALHOST", "kb.example:443"]
        {
            assert!(local.serves_host(host), "{host}");
        }
        for host in
            ["evil.example", "localhost.evil.example", "evil.example:8080", "10.0.0.1", "", "127.0.0.1.evil.example"]
        {
            assert!(!local.serves_host(host), "{host}");
        }
        let open = guard("0.0.0.0:80");
        assert!(open.serves_host("10.0.0.1:80") && open.serves_host("[fe80::1]:80"));
        assert!(!open.serves_host("evil.example"));
    }

    #[test]
    fn only_pages_of_this_machine_or_of_named_origins_are_served() {
        let guard = guard("127.0.0.1:80");
        for origin in ["http://localhost:3000", "http://127.0.0.1", "https://[::1]:8", "https://App.example"] {
            assert!(guard.serves_origin(origin), "{origin}");
        }
        for origin in
            ["null", "http://evil.example", "http://localhost.evil.example", "https://app.example:8443", "file://"]
        {
            assert!(!guard.serves_origin(origin), "{origin}");
        }
    }
}
