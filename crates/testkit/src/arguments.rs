//! The command lines of programs that test: `--name value`, `--name=value`, and flags without a value.

use std::str::FromStr;

/// Where the records of a town are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Engine {
    /// In a file, or in memory.
    Sqlite,
    /// On a server.
    Postgres,
}

/// One argument of a command line, with its value if it is not a flag.
#[derive(Debug)]
pub struct Argument {
    name: String,
    value: String,
}

impl Argument {
    /// Its name, `--` included.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Its value as a number.
    pub fn number<N: FromStr>(&self) -> Result<N, String> {
        self.value.parse().map_err(|_| format!("{} needs a number", self.name))
    }

    /// Its value as a number that is not 0.
    pub fn positive<N: FromStr + Default + PartialEq>(&self) -> Result<N, String> {
        let number: N = self.number()?;
        if number == N::default() {
            return Err(format!("{} must be at least 1", self.name));
        }
        Ok(number)
    }

    /// Its value as an engine.
    pub fn engine(&self) -> Result<Engine, String> {
        match self.value.as_str() {
            "sqlite" => Ok(Engine::Sqlite),
            "postgres" => Ok(Engine::Postgres),
            other => Err(format!("\"{other}\" is not an engine")),
        }
    }

    /// The error for an unknown argument.
    pub fn unknown(&self) -> String {
        format!("unknown argument {}", self.name)
    }
}

/// Gives the arguments to `take` one after the other, all but `flags` with a value. Answers whether help was asked for;
/// then the rest does not matter.
pub fn read_arguments(
    arguments: impl Iterator<Item = String>,
    flags: &[&str],
    mut take: impl FnMut(&Argument) -> Result<(), String>,
) -> Result<bool, String> {
    let mut arguments = arguments.flat_map(|argument| {
        let parts = argument.split_once('=').filter(|_| argument.starts_with("--"));
        let parts = parts.map(|(name, value)| vec![name.to_owned(), value.to_owned()]);
        parts.unwrap_or_else(|| vec![argument])
    });
    while let Some(name) = arguments.next() {
        if name == "--help" || name == "-h" {
            return Ok(true);
        }
        let value = if flags.contains(&name.as_str()) {
            String::new()
        } else {
            arguments.next().ok_or_else(|| format!("{name} needs a value"))?
        };
        take(&Argument { name, value })?;
    }
    Ok(false)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug, Default, PartialEq, Eq)]
    struct Taken {
        help: bool,
        keep: bool,
        many: u32,
    }

    fn read(words: &[&str]) -> Result<Taken, String> {
        let mut taken = Taken::default();
        let words = words.iter().map(|word| (*word).to_owned());
        taken.help = read_arguments(words, &["--keep"], |argument| {
            match argument.name() {
                "--keep" => taken.keep = true,
                "--many" => taken.many = argument.positive()?,
                "--engine" => drop(argument.engine()?),
                _ => return Err(argument.unknown()),
            }
            Ok(())
        })?;
        Ok(taken)
    }

    #[test]
    fn arguments_are_read_either_way() {
        let both = Taken { keep: true, many: 3, help: false };
        assert_eq!(read(&["--many=3", "--keep"]).as_ref(), Ok(&both));
        assert_eq!(read(&["--keep", "--many", "3"]).as_ref(), Ok(&both));
        assert!(read(&["-h", "--nonsense"]).unwrap().help);
    }

    #[test]
    fn errors_name_the_argument() {
        for (words, why) in [
            (&["--many"][..], "--many needs a value"),
            (&["--many", "x"], "--many needs a number"),
            (&["--many", "0"], "--many must be at least 1"),
            (&["--engine", "oracle"], "\"oracle\" is not an engine"),
            (&["--x", "1"], "unknown argument --x"),
        ] {
            assert_eq!(read(words), Err(why.to_owned()));
        }
    }
}
