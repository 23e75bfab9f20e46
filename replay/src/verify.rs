use crate::cli::VerifyArgs; use crate::error::Error; use std::io::Write;
pub(crate) fn run(_args: &VerifyArgs, _out: &mut dyn Write) -> Result<u8, Error> { Ok(0) }
