//! Checks of an attack that a schema cannot express.

use mcptest_trace::matcher::Problem;
use mcptest_trace::target::Target;

use crate::attack::Attack;
use crate::goal::Goal;
use crate::wording::{self, WORDINGS};
use crate::written::{Place, WrittenAttack};

impl WrittenAttack {
    /// Checks the attack. Pointers of problems start at the entry.
    ///
    /// # Errors
    /// Every problem that the schema does not find.
    pub fn compile(&self) -> Result<Attack, Vec<Problem>> {
        let mut problems = Vec::new();
        self.check_text(&mut problems);
        self.check_target(&mut problems);
        if let Some(at) = &self.at {
            match Target::parse(at) {
                Ok(path) if ["content", "structured_content"].contains(&path.root()) => {}
                Ok(_) => problems.push(
                    Problem::new("/at", format!("`{at}` is not a string of a result"))
                        .help("it begins with `content` or `structured_content`"),
                ),
                Err(error) => problems.push(Problem::new("/at", error.to_string())),
            }
            if self.place != Place::Result {
                problems.push(Problem::new("/at", "only `place: result` takes `at`").on_key());
            }
        }
        self.check_goal(&mut problems);
        if problems.is_empty() {
            Ok(Attack::new(self.clone()))
        } else {
            Err(problems)
        }
    }

    fn check_text(&self, problems: &mut Vec<Problem>) {
        match (&self.payload, &self.text) {
            (Some(_), Some(_)) => problems.push(
                Problem::new("/text", "an attack has `payload` or `text`, not both").on_key(),
            ),
            (None, None) => problems.push(
                Problem::new("", format!("attack `{}` has no text", self.name))
                    .help("name a bundled wording (`payload: user-first`), or write a `text:`"),
            ),
            _ => {}
        }
        for (index, name) in self.payload.iter().flat_map(|list| &list.0).enumerate() {
            if wording::find(name).is_none() {
                let near = WORDINGS.iter().map(|wording| {
                    (
                        strsim::damerau_levenshtein(name, &wording.name),
                        &wording.name,
                    )
                });
                let near = near.min_by_key(|(distance, _)| *distance);
                let help = match near {
                    Some((distance, near)) if distance <= 4 => format!("did you mean `{near}`?"),
                    _ => {
                        let names: Vec<&str> = WORDINGS
                            .iter()
                            .map(|wording| wording.name.as_str())
                            .collect();
                        format!("the wordings are {}", names.join(", "))
                    }
                };
                let at = match &self.payload {
                    Some(list) if list.0.len() > 1 => format!("/payload/{index}"),
                    _ => "/payload".to_owned(),
                };
                problems.push(Problem::new(at, format!("unknown wording `{name}`")).help(help));
            }
        }
    }

    fn check_target(&self, problems: &mut Vec<Problem>) {
        if self.target.is_any() && !matches!(self.place, Place::Tool | Place::Instructions) {
            problems.push(
                Problem::new("", format!("attack `{}` has no target", self.name))
                    .help("name what it applies to, such as `target: { tool: read_file }`"),
            );
        }
        let place = self.place.as_str();
        let takes = |key: &str| match self.place {
            Place::Result | Place::Error | Place::Description | Place::Tool => key == "tool",
            Place::Parameter => key == "tool" || key == "parameter",
            Place::Resource => key == "resource",
            Place::Prompt => key == "prompt",
            Place::Instructions => false,
        };
        for (key, value) in [
            ("tool", &self.target.tool),
            ("resource", &self.target.resource),
            ("prompt", &self.target.prompt),
            ("parameter", &self.target.parameter),
        ] {
            if value.is_some() && !takes(key) {
                problems.push(
                    Problem::new(
                        format!("/target/{key}"),
                        format!("`place: {place}` does not take `{key}`"),
                    )
                    .on_key(),
                );
            }
        }
    }

    fn check_goal(&self, problems: &mut Vec<Problem>) {
        let Some(goal) = &self.goal else {
            return;
        };
        let set = [
            ("call", goal.call.is_some()),
            ("calls", goal.calls.is_some()),
            ("leak", goal.leak.is_some()),
            ("say", goal.say.is_some()),
            ("stall", goal.stall.is_some()),
        ];
        if set.iter().filter(|(_, set)| *set).count() != 1 {
            problems.push(Problem::new(
                "/goal",
                "a goal is one of `call`, `calls`, `leak`, `say` and `stall: true`",
            ));
        }
        if goal.stall == Some(false) {
            problems.push(Problem::new("/goal/stall", "`stall` is `true` or left out"));
        }
        if goal.within.is_some() && goal.leak.is_none() {
            problems.push(Problem::new("/goal/in", "only `leak` takes `in`").on_key());
        }
        // Any canary will do to find out whether the matchers compile.
        if let Err(found) = Goal::compile(goal, "mct-000000000000", "/goal") {
            problems.extend(found);
        }
    }
}
