//! `--attacks FILE`: the attacks of a session of the proxy or the mock server.

use std::path::Path;

use mcptest_attack::{Attack, AttackRun, WrittenAttack};
use mcptest_yaml::Diagnostics;
use schemars::JsonSchema;
use serde::Deserialize;

use crate::cli::AttackArgs;
use crate::failure::Failure;
use crate::files;
use crate::secrets;

/// A file with attacks, as a suite has them.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct AttacksFile {
    /// The attacks.
    #[schemars(length(min = 1))]
    attacks: Vec<WrittenAttack>,
}

/// A session that attacks are for.
#[derive(Debug, Clone, Copy)]
pub(crate) struct SessionOf<'a> {
    /// The test that canaries belong to.
    pub test: Option<&'a str>,
    /// The number of the run, from 1.
    pub run: Option<u32>,
    /// The name of the server.
    pub server: Option<&'a str>,
}

/// The attacks of a session: those of the file and these, or the ones that `--attack` names.
/// `None` if there are none.
pub(crate) fn of_session(
    args: &AttackArgs,
    own: &[Attack],
    session: SessionOf<'_>,
) -> Result<Option<AttackRun>, Failure> {
    let mut attacks = own.to_vec();
    if let Some(path) = &args.attacks {
        attacks.extend(read(path)?);
    }
    let names: Vec<&str> = attacks.iter().map(Attack::name).collect();
    let has = |name: &String| names.contains(&name.as_str());
    if let Some(unknown) = args.attack.iter().find(|name| !has(name)) {
        let known = match names.is_empty() {
            true => "give a file with --attacks".to_owned(),
            false => format!("there are {}", names.join(", ")),
        };
        return Err(Failure::Message(format!(
            "unknown attack `{unknown}`; {known}"
        )));
    }
    if !args.attack.is_empty() {
        attacks.retain(|attack| args.attack.iter().any(|name| name == attack.name()));
    }
    if attacks.is_empty() {
        return Ok(None);
    }
    let servers: Vec<String> = session.server.map(str::to_owned).into_iter().collect();
    let test = session.test.unwrap_or_default();
    let run = u64::from(session.run.unwrap_or(1));
    let attacks = AttackRun::new(&attacks, test, run, &servers);
    secrets::keep(attacks.planned().map(|planned| planned.canary.clone()));
    Ok(Some(attacks))
}

fn read(path: &Path) -> Result<Vec<Attack>, Failure> {
    let name = path.display().to_string();
    let bytes = files::read(path)?;
    let (file, document) = mcptest_yaml::from_bytes::<AttacksFile>(&name, &bytes)?;
    let mut attacks: Vec<Attack> = Vec::new();
    let mut problems = Vec::new();
    for (index, written) in file.attacks.iter().enumerate() {
        let at = format!("/attacks/{index}");
        if attacks.iter().any(|attack| attack.name() == written.name) {
            let message = format!("duplicate attack `{}`", written.name);
            problems.push(document.diagnostic_at(&format!("{at}/name"), message));
        }
        match written.compile() {
            Ok(attack) => attacks.push(attack),
            Err(found) => problems.extend(found.iter().map(|problem| {
                let place = format!("{at}{}", problem.pointer);
                let diagnostic = document.diagnostic_at(&place, &problem.message);
                match &problem.help {
                    Some(help) => diagnostic.help(help.clone()),
                    None => diagnostic,
                }
            })),
        }
    }
    if problems.is_empty() {
        Ok(attacks)
    } else {
        Err(Diagnostics(problems).into())
    }
}
