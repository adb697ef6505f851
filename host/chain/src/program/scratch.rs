//! Scratch memory: which value lives in which slot.
//!
//! A slot holds values of one kind of rows, one after the other. A value takes a slot when it is written and gives it back after its
//! last reading, over the whole program, so that the memory is that of the widest moment and not of all values. An op's outputs never
//! share a slot with its inputs. Ports have slots of their own: they hold all rows of a step, also where a segment's ops run over a part
//! of the rows at a time, in which all other values live.

use super::Rows;

/// One slot.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Slot {
    /// The rows that it holds.
    pub rows: Rows,
    /// Whether it holds ports.
    pub port: bool,
    /// Words of the widest value that it holds.
    pub width: usize,
}

impl Slot {
    fn fits(self, life: &Life) -> bool {
        (self.rows, self.port) == (life.rows, life.port)
    }
}

/// A value's life, in op numbers of the whole program.
#[derive(Debug, Clone, Copy)]
pub(super) struct Life {
    pub rows: Rows,
    pub port: bool,
    pub width: usize,
    /// The op that writes it; values that come from outside are there before op 0.
    pub born: Option<usize>,
    /// The last op that reads it, or a later one up to which it must stay.
    pub last: usize,
}

/// A way to give values their slots: from their lives and the number of ops to the slots and the slot of each value.
pub(super) type Assign = fn(&[Life], usize) -> (Vec<Slot>, Vec<usize>);

/// A slot for each value: what sharing is held against.
#[cfg(test)]
pub(super) fn assign_apart(lives: &[Life], _ops: usize) -> (Vec<Slot>, Vec<usize>) {
    let slots = lives.iter().map(|life| Slot { rows: life.rows, port: life.port, width: life.width });
    (slots.collect(), (0..lives.len()).collect())
}

/// Slots that values share when they do not live together.
pub(super) fn assign(lives: &[Life], ops: usize) -> (Vec<Slot>, Vec<usize>) {
    let mut planner = Planner { slots: vec![], free: vec![], slot_of: vec![usize::MAX; lives.len()] };
    let mut born: Vec<Vec<usize>> = vec![vec![]; ops];
    let mut dying: Vec<Vec<usize>> = vec![vec![]; ops];
    for (value, life) in lives.iter().enumerate() {
        match life.born {
            None => planner.take(value, life),
            Some(op) => born[op].push(value),
        }
        // A value that is read after the last op never dies.
        if let Some(list) = dying.get_mut(life.last.max(life.born.unwrap_or(0))) {
            list.push(value);
        }
    }
    for op in 0..ops {
        born[op].iter().for_each(|value| planner.take(*value, &lives[*value]));
        planner.free.extend(dying[op].iter().map(|value| planner.slot_of[*value]));
    }
    (planner.slots, planner.slot_of)
}

struct Planner {
    slots: Vec<Slot>,
    free: Vec<usize>,
    slot_of: Vec<usize>,
}

impl Planner {
    /// The narrowest free slot that fits, else the widest one, grown, else a new one.
    fn take(&mut self, value: usize, life: &Life) {
        let candidates = || self.free.iter().enumerate().filter(|(_, slot)| self.slots[**slot].fits(life));
        let fitting =
            candidates().filter(|(_, slot)| self.slots[**slot].width >= life.width).min_by_key(|(_, slot)| self.slots[**slot].width);
        let found = fitting.or_else(|| candidates().max_by_key(|(_, slot)| self.slots[**slot].width)).map(|(at, _)| at);
        let slot = match found {
            Some(at) => self.free.swap_remove(at),
            None => {
                self.slots.push(Slot { rows: life.rows, port: life.port, width: 0 });
                self.slots.len() - 1
            }
        };
        self.slots[slot].width = self.slots[slot].width.max(life.width);
        self.slot_of[value] = slot;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Random programs of values: no two values of one slot may be alive at once, and the widths and rows of a slot must fit.
    fn lives() -> impl Strategy<Value = Vec<Life>> {
        let life = (any::<(bool, bool)>(), 1usize..40, prop::option::of(0usize..30), 0usize..35);
        let life = life.prop_map(|((tokens, port), width, born, more)| Life {
            rows: if tokens { Rows::Tokens } else { Rows::Outs },
            port,
            width,
            born,
            last: born.unwrap_or(0) + more,
        });
        prop::collection::vec(life, 1..60)
    }

    proptest! {
        #[test]
        fn values_of_one_slot_never_live_together(lives in lives()) {
            let (slots, slot_of) = assign(&lives, 30);
            for (a, life_a) in lives.iter().enumerate() {
                let slot = slots[slot_of[a]];
                prop_assert!(slot.fits(life_a) && slot.width >= life_a.width);
                for (b, life_b) in lives.iter().enumerate().filter(|(b, _)| *b != a && slot_of[*b] == slot_of[a]) {
                    let (first, second) = if life_a.born <= life_b.born { (life_a, life_b) } else { (life_b, life_a) };
                    // The later one is written by an op after the last reader of the earlier one.
                    prop_assert!(second.born.is_some_and(|born| born > first.last.max(first.born.unwrap_or(0))), "values {} and {}", a, b);
                }
            }
        }
    }

    #[test]
    fn a_chain_of_values_needs_two_slots() {
        let life = |op: usize| Life { rows: Rows::Tokens, port: false, width: 8, born: Some(op), last: op + 1 };
        let lives: Vec<Life> = (0..20).map(life).collect();
        assert_eq!(assign(&lives, 20).0.len(), 2);
    }
}
