//! The sessions of clients over HTTP: a bounded table from which idle ones leave.
//!
//! A client that ends without `DELETE` leaves its session behind. So a session that nobody used for
//! [`IDLE_TIME`] expires, and a full table drops the session that was idle longest. A session is
//! busy while anything else holds it: a request in progress, an open stream.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// The number of sessions kept.
const MAX_SESSIONS: usize = 10_000;

/// The time after which a session that is not used expires.
const IDLE_TIME: Duration = Duration::from_secs(30 * 60);

/// Sessions by their ids.
#[derive(Debug)]
pub(crate) struct Sessions<T> {
    by_id: HashMap<String, Entry<T>>,
    /// The ids in the order of their last use.
    by_use: BTreeMap<u64, String>,
    /// The number of the next use.
    next_use: u64,
    next_id: u64,
    max: usize,
}

#[derive(Debug)]
struct Entry<T> {
    session: Arc<T>,
    used: u64,
    at: Instant,
}

/// The table is full, and no session in it is idle.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct SessionTableFull;

impl<T> Default for Sessions<T> {
    fn default() -> Self {
        Self {
            by_id: HashMap::new(),
            by_use: BTreeMap::new(),
            next_use: 0,
            next_id: 1,
            max: MAX_SESSIONS,
        }
    }
}

impl<T> Sessions<T> {
    /// Adds a session and returns its id, with the sessions that had to leave.
    pub(crate) fn insert(
        &mut self,
        session: Arc<T>,
        now: Instant,
    ) -> Result<(String, Vec<Arc<T>>), SessionTableFull> {
        let mut left = self.expire(now);
        if self.by_id.len() >= self.max {
            left.push(self.evict(now).ok_or(SessionTableFull)?);
        }
        let id = format!("mock-session-{}", self.next_id);
        self.next_id += 1;
        let used = self.use_number();
        self.by_use.insert(used, id.clone());
        let entry = Entry {
            session,
            used,
            at: now,
        };
        self.by_id.insert(id.clone(), entry);
        Ok((id, left))
    }

    /// Finds a session, which is thereby used.
    pub(crate) fn get(&mut self, id: &str, now: Instant) -> Option<Arc<T>> {
        let used = self.use_number();
        let entry = self.by_id.get_mut(id)?;
        if is_idle(entry) && now.duration_since(entry.at) > IDLE_TIME {
            self.remove(id);
            return None;
        }
        if let Some(id) = self.by_use.remove(&entry.used) {
            self.by_use.insert(used, id);
        }
        (entry.used, entry.at) = (used, now);
        Some(Arc::clone(&entry.session))
    }

    /// Removes a session.
    pub(crate) fn remove(&mut self, id: &str) -> Option<Arc<T>> {
        let entry = self.by_id.remove(id)?;
        self.by_use.remove(&entry.used);
        Some(entry.session)
    }

    /// Removes sessions that nobody used for too long. Busy ones at the front are used now.
    fn expire(&mut self, now: Instant) -> Vec<Arc<T>> {
        let mut expired = Vec::new();
        while let Some((_, id)) = self.by_use.first_key_value() {
            let id = id.clone();
            let is_old = |entry: &Entry<T>| now.duration_since(entry.at) > IDLE_TIME;
            match self.by_id.get(&id) {
                Some(entry) if is_old(entry) && is_idle(entry) => expired.extend(self.remove(&id)),
                Some(entry) if is_old(entry) => drop(self.get(&id, now)),
                _ => break,
            }
        }
        expired
    }

    /// Removes the session that was idle longest.
    fn evict(&mut self, now: Instant) -> Option<Arc<T>> {
        for _ in 0..self.by_use.len() {
            let (_, id) = self.by_use.first_key_value()?;
            let id = id.clone();
            if self.by_id.get(&id).is_some_and(is_idle) {
                return self.remove(&id);
            }
            // A busy session goes to the back, so that it is not tried again immediately.
            self.get(&id, now);
        }
        None
    }

    fn use_number(&mut self) -> u64 {
        self.next_use += 1;
        self.next_use
    }
}

/// Returns true if only the table holds the session.
fn is_idle<T>(entry: &Entry<T>) -> bool {
    Arc::strong_count(&entry.session) == 1
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(max: usize) -> Sessions<u32> {
        Sessions {
            max,
            ..Sessions::default()
        }
    }

    fn insert(sessions: &mut Sessions<u32>, now: Instant) -> Result<String, SessionTableFull> {
        sessions.insert(Arc::new(0), now).map(|(id, _)| id)
    }

    #[test]
    fn issue_14_a_full_table_drops_the_session_that_was_idle_longest() {
        let (mut sessions, now) = (of(3), Instant::now());
        let ids: Vec<String> = (0..3)
            .map(|_| insert(&mut sessions, now).unwrap())
            .collect();
        sessions.get(&ids[0], now).unwrap();
        let fourth = insert(&mut sessions, now).unwrap();
        let has = |sessions: &mut Sessions<u32>, id: &str| sessions.get(id, now).is_some();
        assert!(!has(&mut sessions, &ids[1]));
        for id in [&ids[0], &ids[2], &fourth] {
            assert!(has(&mut sessions, id), "{id}");
        }
        assert_eq!((sessions.by_id.len(), sessions.by_use.len()), (3, 3));
    }

    #[test]
    fn issue_14_a_session_expires_unless_it_is_busy() {
        let (mut sessions, now) = (of(10), Instant::now());
        let (idle, busy) = (
            insert(&mut sessions, now).unwrap(),
            insert(&mut sessions, now).unwrap(),
        );
        let held = sessions.get(&busy, now).unwrap();
        let later = now + IDLE_TIME + Duration::from_secs(1);
        let (_, left) = sessions.insert(Arc::new(7), later).unwrap();
        assert_eq!(left.len(), 1);
        assert!(sessions.get(&idle, later).is_none());
        assert!(sessions.get(&busy, later).is_some());
        drop(held);
        let much_later = later + IDLE_TIME + Duration::from_secs(1);
        assert!(sessions.get(&busy, much_later).is_none());
        assert_eq!(sessions.by_id.len(), sessions.by_use.len());
    }

    #[test]
    fn issue_14_a_table_of_busy_sessions_has_no_room() {
        let (mut sessions, now) = (of(2), Instant::now());
        let held: Vec<Arc<u32>> = (0..2)
            .map(|_| {
                let id = insert(&mut sessions, now).unwrap();
                sessions.get(&id, now).unwrap()
            })
            .collect();
        assert_eq!(insert(&mut sessions, now), Err(SessionTableFull));
        drop(held);
        assert!(insert(&mut sessions, now).is_ok());
    }
}
