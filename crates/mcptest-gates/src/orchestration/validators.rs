//! Compiled input schemas, kept for all runs of a test.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use serde_json::Value;

use crate::digest::Digest;

/// More schemas than this are compiled each time: runs of one test are offered the same few tools.
const MAX_KEPT: usize = 1000;

/// A compiled schema, or the reason why it is invalid.
pub(super) type Compiled = Arc<Result<jsonschema::Validator, String>>;

/// The schemas that were compiled so far. Compiling one costs far more than applying it.
#[derive(Debug, Clone, Default)]
pub(super) struct Validators(Arc<Mutex<BTreeMap<Digest, Compiled>>>);

impl Validators {
    /// The compiled form of a schema.
    pub fn get(&self, schema: &Value) -> Compiled {
        // The order of keys counts: it decides which error of several comes first.
        let key = Digest::of_text(&schema.to_string());
        // A thread that panicked left whole entries behind.
        let known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(compiled) = known.get(&key) {
            return Arc::clone(compiled);
        }
        drop(known);
        let compiled = Arc::new(
            jsonschema::validator_for(schema)
                .map_err(|error| format!("its schema is broken: {error}")),
        );
        let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if known.len() < MAX_KEPT {
            known.insert(key, Arc::clone(&compiled));
        }
        compiled
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_schema_is_compiled_once_and_other_schemas_stay_apart() {
        let validators = Validators::default();
        let number = validators.get(&json!({"type": "number"}));
        assert!(Arc::ptr_eq(
            &number,
            &validators.get(&json!({"type": "number"}))
        ));
        assert!(number.as_ref().as_ref().unwrap().is_valid(&json!(1)));
        let text = validators.get(&json!({"type": "string"}));
        assert!(!text.as_ref().as_ref().unwrap().is_valid(&json!(1)));
        let invalid = validators.get(&json!({"type": 7}));
        assert!(invalid.as_ref().as_ref().unwrap_err().contains("broken"));
    }
}
