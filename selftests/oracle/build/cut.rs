// SPDX-License-Identifier: GPL-2.0

//! Cuts functions, types and constants out of the kernel source, by name.

use std::{fs, path::Path};

/// One file of the kernel source.
pub(crate) struct Source {
    /// Its path within the source.
    pub(crate) path: &'static str,
    text: String,
}

/// A function as it stands in the source.
pub(crate) struct Function {
    /// From its type to the parenthesis that closes the parameters.
    pub(crate) signature: String,
    /// All of it.
    pub(crate) text: String,
}

impl Source {
    /// Reads `path` of the kernel source `root`.
    pub(crate) fn read(root: &Path, path: &'static str) -> Self {
        let full = root.join(path);
        let text = fs::read_to_string(&full).unwrap_or_else(|e| {
            panic!(
                "lowtail: error: {}: {e}\nlowtail: remedy: make setup",
                full.display()
            )
        });
        Self { path, text }
    }

    /// The whole of it.
    pub(crate) fn whole(&self) -> &str {
        &self.text
    }

    /// The definition of function `name`, if it is here.
    pub(crate) fn function(&self, name: &str) -> Option<Function> {
        let call = format!("{name}(");
        for (at, _) in self.text.match_indices(&call) {
            if self.text[..at].ends_with(|c: char| c.is_alphanumeric() || c == '_') {
                continue;
            }
            let mut start = self.text[..at].rfind('\n').map_or(0, |n| n + 1);
            if !self.text[start..].starts_with(|c: char| c.is_alphabetic() || c == '_') {
                continue;
            }
            // The type may stand on the line before.
            if start == at {
                start = self.text[..at - 1].rfind('\n').map_or(0, |n| n + 1);
            }
            let Some(close) = closing(&self.text, at + name.len()) else {
                continue;
            };
            if !self.text[close + 1..].trim_start().starts_with('{') {
                continue;
            }
            let end = close + self.text[close..].find("\n}\n")? + 3;
            return Some(Function {
                signature: self.text[start..=close].to_owned(),
                text: self.text[start..end].to_owned(),
            });
        }
        None
    }

    /// The definition of a structure, a union or an enumeration (`what` and its name), if it is
    /// here.
    pub(crate) fn definition(&self, what: &str) -> Option<String> {
        let at = self.text.find(&format!("\n{what} {{"))? + 1;
        let end = at + self.text[at..].find("\n}")? + 2;
        let end = end + self.text[end..].find(';')? + 1;
        Some(self.text[at..end].to_owned())
    }

    /// The enumeration that `member` is of, if it is here.
    pub(crate) fn enumeration_of(&self, member: &str) -> Option<String> {
        let at = self
            .text
            .match_indices(member)
            .find(|(at, _)| {
                let rest = self.text[at + member.len()..].trim_start();
                self.text[..*at].ends_with('\t') && rest.starts_with(['=', ','])
            })?
            .0;
        let start = self.text[..at].rfind("\nenum")? + 1;
        let end = at + self.text[at..].find("\n}")? + 2;
        let end = end + self.text[end..].find(';')? + 1;
        Some(self.text[start..end].to_owned())
    }

    /// The lines that define a macro whose name begins with `prefix`.
    pub(crate) fn constants(&self, prefix: &str) -> String {
        let mut lines = self.text.lines();
        let mut found = String::new();
        while let Some(line) = lines.next() {
            let Some(rest) = line.strip_prefix("#define") else {
                continue;
            };
            if !rest.trim_start().starts_with(prefix) {
                continue;
            }
            let mut line = line;
            loop {
                // A comment may go on where the constant does not.
                found.push_str(line.split("/*").next().unwrap_or_default());
                found.push('\n');
                if !line.ends_with('\\') {
                    break;
                }
                line = lines.next().unwrap_or_default();
            }
        }
        found
    }
}

/// Where the parenthesis that opens at `open` closes.
fn closing(text: &str, open: usize) -> Option<usize> {
    let mut depth = 0;
    for (i, c) in text[open..].char_indices() {
        match c {
            '(' => depth += 1,
            ')' => depth -= 1,
            _ => {}
        }
        if depth == 0 {
            return Some(open + i);
        }
    }
    None
}

/// `find` in the first of `sources` that has it.
pub(crate) fn first<T>(sources: &[Source], what: &str, find: impl Fn(&Source) -> Option<T>) -> T {
    sources.iter().find_map(find).unwrap_or_else(|| {
        let names: Vec<_> = sources.iter().map(|s| s.path).collect();
        panic!(
            "lowtail: error: this kernel source has no {what} in {}\n\
             lowtail: remedy: teach selftests/oracle/build what it is called there",
            names.join(", ")
        )
    })
}
