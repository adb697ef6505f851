//! Lowers the scores of tokens that were there before.

use std::collections::HashSet;

/// The tokens of a conversation, and what being one of them costs.
#[derive(Debug, Clone)]
pub struct Repetition {
    penalty: f32,
    seen: HashSet<u32>,
}

impl Repetition {
    /// A penalty of 1 changes nothing; one above it makes tokens that were there less probable.
    pub fn new(penalty: f32) -> Self {
        Self { penalty, seen: HashSet::new() }
    }

    /// These tokens are there now.
    pub fn note(&mut self, ids: &[u32]) {
        self.seen.extend(ids);
    }

    /// Divides the positive scores of the tokens that are there and multiplies the others', once however often they are.
    pub fn lower(&self, logits: &mut [f32]) {
        for id in &self.seen {
            if let Some(logit) = logits.get_mut(*id as usize) {
                *logit = if *logit < 0.0 { *logit * self.penalty } else { *logit / self.penalty };
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::Repetition;

    #[test]
    fn scores_go_down_once_whatever_their_sign() {
        let mut repetition = Repetition::new(2.0);
        repetition.note(&[0, 1, 4, 1]);
        repetition.note(&[1, 99]);
        let mut logits = [3.0, -3.0, 5.0, -5.0, 0.0];
        repetition.lower(&mut logits);
        assert_eq!(logits, [1.5, -6.0, 5.0, -5.0, 0.0]);
    }
}
