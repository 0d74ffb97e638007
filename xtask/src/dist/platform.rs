//! The platforms that releases are built for, and their names in each ecosystem.

/// A platform with a program.
#[derive(Debug, PartialEq, Eq)]
pub struct Platform {
    /// The target triple of Rust.
    pub target: &'static str,
    /// `process.platform` of Node.
    pub os: &'static str,
    /// `process.arch` of Node.
    pub cpu: &'static str,
    /// The architecture of Debian, on Linux.
    pub debian: Option<&'static str>,
    /// False for a platform that is only built locally.
    pub released: bool,
}

const fn platform(
    target: &'static str,
    os: &'static str,
    cpu: &'static str,
    debian: Option<&'static str>,
    released: bool,
) -> Platform {
    Platform {
        target,
        os,
        cpu,
        debian,
        released,
    }
}

/// All platforms. Programs for Linux are static (musl), so one runs on every distribution.
pub const PLATFORMS: [Platform; 6] = [
    platform(
        "x86_64-unknown-linux-musl",
        "linux",
        "x64",
        Some("amd64"),
        true,
    ),
    platform(
        "aarch64-unknown-linux-musl",
        "linux",
        "arm64",
        Some("arm64"),
        true,
    ),
    platform("aarch64-apple-darwin", "darwin", "arm64", None, true),
    platform("x86_64-apple-darwin", "darwin", "x64", None, true),
    platform(
        "x86_64-unknown-linux-gnu",
        "linux",
        "x64",
        Some("amd64"),
        false,
    ),
    platform(
        "aarch64-unknown-linux-gnu",
        "linux",
        "arm64",
        Some("arm64"),
        false,
    ),
];

impl Platform {
    /// The platform of a target triple.
    pub fn of(target: &str) -> Option<&'static Self> {
        PLATFORMS.iter().find(|platform| platform.target == target)
    }

    /// The name of its npm package.
    pub fn npm_name(&self) -> String {
        format!("@mcptest/{}-{}", self.os, self.cpu)
    }
}

/// The platforms that releases have.
pub fn released() -> impl Iterator<Item = &'static Platform> {
    PLATFORMS.iter().filter(|platform| platform.released)
}

/// The target triples, for messages.
pub fn list() -> String {
    PLATFORMS.map(|platform| platform.target).join(", ")
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn released_platforms_have_different_names() {
        let names: BTreeSet<String> = released().map(Platform::npm_name).collect();
        assert_eq!(names.len(), released().count());
    }

    #[test]
    fn the_readme_lists_every_released_platform() {
        let readme = crate::workspace::root().join("README.md");
        let readme = std::fs::read_to_string(readme).unwrap();
        for platform in released() {
            assert!(readme.contains(platform.target), "{}", platform.target);
        }
    }
}
