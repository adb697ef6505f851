//! Making a plugin's words fit for one line.

pub(crate) use coli_base::line::one_line;
