//! `attacks:`: their texts, targets and goals, and the tests that inject them.

use super::Checker;
use super::diagnostics::unknown_name;
use crate::import::Part;
use crate::options::Purpose;

impl Checker<'_> {
    pub(super) fn attacks(&mut self, part: &Part) {
        for (index, written) in part.file.attacks.iter().enumerate() {
            let at = format!("/attacks/{index}");
            let name = written.name.as_str();
            let is_fault = self.faults.iter().any(|fault| fault.name == name)
                || self.parts.iter().any(|part| {
                    let mut faults = part.file.faults.iter();
                    faults.any(|fault| fault.name == name)
                });
            let is_known = self.attacks.iter().any(|attack| attack.name() == name)
                || self.invalid_attacks.iter().any(|other| other == name);
            let message = if is_known {
                Some(format!("duplicate attack `{name}`"))
            } else if is_fault {
                Some(format!("`{name}` is the name of a fault, too"))
            } else {
                None
            };
            if let Some(message) = message {
                let problem = part.document.diagnostic_at(&format!("{at}/name"), message);
                self.problems
                    .push(problem.help("`inject:` takes names of faults and attacks"));
            }
            let plant = written
                .plant
                .as_ref()
                .and_then(|plant| plant.server.as_ref());
            let servers = [
                ("target/server", written.target.server.as_ref()),
                ("plant/server", plant),
            ];
            for (key, server) in servers {
                if let Some(server) = server
                    && self.options.purpose == Purpose::Run
                    && !self.is_declared(server)
                {
                    let known = self.declared();
                    let place = format!("{at}/{key}");
                    self.problems.push(unknown_name(
                        part, &place, "server", server, &known, "servers",
                    ));
                }
            }
            match written.compile() {
                Ok(attack) => self.attacks.push(attack),
                Err(found) => {
                    self.invalid_attacks.push(written.name.clone());
                    self.add(part, &at, &found);
                }
            }
        }
    }
}
