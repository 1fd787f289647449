//! A JSON object as a list of fields that are taken out one by one.

use std::borrow::Cow;
use std::fmt;

use gt_core::bead::check_text;
use gt_core::{Carried, Invalid, Timestamp};
use serde::de::{Deserialize, Deserializer, MapAccess, Visitor};
use serde_json::error::Category;
use serde_json::value::RawValue;

use super::values::{self, BorrowedText};
use crate::RecordError;

/// The fields of one object, in their order, unparsed. Each reader takes the fields it knows; the fields left at
/// the end are unknown, so no list of known names can disagree with the code that reads them.
pub(crate) struct RecordFields<'a> {
    /// A value that was taken, or that a later field of the same name replaces, is `None`.
    entries: Vec<(Cow<'a, str>, Option<&'a RawValue>)>,
    /// The places of the entries, each name once, in the order of [`search_key`].
    by_name: Vec<usize>,
}

/// With what the lines begin that git puts around two versions. No JSON begins like that.
const CONFLICT_MARKERS: [&str; 4] = ["<<<<<<<", "|||||||", "=======", ">>>>>>>"];

impl<'a> RecordFields<'a> {
    /// Splits the text of an object. Of fields with the same name the last one counts.
    pub(crate) fn parse(text: &'a str) -> Result<Self, RecordError> {
        if CONFLICT_MARKERS.iter().any(|marker| text.starts_with(marker)) {
            return Err(RecordError::line("a conflict marker of git; resolve the conflict first"));
        }
        let ObjectEntries(mut entries) =
            serde_json::from_str(text).map_err(|error| match error.classify() {
                Category::Data => {
                    RecordError::line(format!("expected an object, found {}", values::shown(text)))
                }
                _ => RecordError::syntax(&error),
            })?;
        let mut by_name: Vec<usize> = (0..entries.len()).collect();
        by_name.sort_by(|&a, &b| search_key(&entries[a].0).cmp(&search_key(&entries[b].0)));
        // The sort is stable: of two fields with the same name, the later one still comes second.
        by_name.dedup_by(|later, earlier| {
            let repeated = entries[*later].0 == entries[*earlier].0;
            if repeated {
                entries[*earlier].1 = None;
                *earlier = *later;
            }
            repeated
        });
        Ok(Self { entries, by_name })
    }

    fn place(&self, name: &str) -> Option<usize> {
        self.by_name
            .binary_search_by(|&place| search_key(&self.entries[place].0).cmp(&search_key(name)))
            .ok()
            .map(|found| self.by_name[found])
    }

    /// Looks at a field without taking it; `null` counts as absent.
    pub(crate) fn peek(&self, name: &str) -> Option<&'a RawValue> {
        let place = self.place(name)?;
        self.entries[place].1.filter(|raw| raw.get() != "null")
    }

    /// Takes a field for which `null` means something.
    pub(crate) fn take_even_null(&mut self, name: &str) -> Option<&'a RawValue> {
        let place = self.place(name)?;
        self.entries[place].1.take()
    }

    /// Takes a field; `null` counts as absent.
    pub(crate) fn take(&mut self, name: &str) -> Option<&'a RawValue> {
        self.take_even_null(name).filter(|raw| raw.get() != "null")
    }

    /// Takes a field and makes something of it.
    pub(crate) fn read<T>(
        &mut self,
        name: &str,
        convert: impl FnOnce(&'a RawValue) -> Result<T, Invalid>,
    ) -> Result<Option<T>, RecordError> {
        self.take(name)
            .map(convert)
            .transpose()
            .map_err(|invalid| RecordError::field(name, invalid))
    }

    /// Takes a text; absent is the same as empty.
    pub(crate) fn text(&mut self, name: &str) -> Result<String, RecordError> {
        let text = self.read(name, values::text)?;
        Ok(text.map(Cow::into_owned).unwrap_or_default())
    }

    /// Takes a field and makes something of it; a value that cannot be used is left out and reported.
    pub(crate) fn mended<T>(
        &mut self,
        name: &str,
        repairs: &mut Vec<String>,
        convert: impl FnOnce(&'a RawValue) -> Result<T, Invalid>,
    ) -> Option<T> {
        match self.take(name).map(convert)? {
            Ok(value) => Some(value),
            Err(invalid) => {
                repairs.push(format!("dropped {name}: {invalid}"));
                None
            }
        }
    }

    /// Takes a text; absent is the same as empty. Another value is kept as it is spelled, and told.
    pub(crate) fn mended_text(&mut self, name: &str, repairs: &mut Vec<String>) -> String {
        let Some(raw) = self.take(name) else { return String::new() };
        match values::text(raw) {
            Ok(text) => text.into_owned(),
            Err(invalid) => {
                repairs.push(format!("kept {name} as text: {invalid}"));
                values::any_text(raw)
            }
        }
    }

    /// Takes an instant. One without zone is read as UTC and told. One that cannot be read is replaced by `stand_in` and told; so
    /// is Go's zero if there is a stand-in.
    pub(crate) fn mended_time(
        &mut self,
        name: &str,
        repairs: &mut Vec<String>,
        stand_in: Option<Timestamp>,
    ) -> Option<Timestamp> {
        let raw = self.take(name)?;
        let time = values::timestamp(raw).map_err(|invalid| invalid.to_string());
        let problem = match time {
            Ok(Some(time)) => return Some(time),
            // The zero time is how some writers leave out a time that need not be there.
            Ok(None) if stand_in.is_none() => return None,
            Ok(None) => "it is the zero time".to_owned(),
            Err(problem) => match time_without_zone(raw) {
                Some((text, time)) => {
                    repairs.push(format!("{name} is in UTC: \"{text}\" has no zone"));
                    return Some(time);
                }
                None => problem,
            },
        };
        repairs.push(match stand_in {
            Some(_) => format!("{name} is the time of the import: {problem}"),
            None => format!("dropped {name}: {problem}"),
        });
        stand_in
    }

    /// Takes a text that is to be parsed further; empty is the same as absent.
    pub(crate) fn parsed<T>(
        &mut self,
        name: &str,
        parse: impl FnOnce(&str) -> Result<T, Invalid>,
    ) -> Result<Option<T>, RecordError> {
        let parsed = self.read(name, |raw| match values::text(raw)? {
            empty if empty.is_empty() => Ok(None),
            text => parse(&text).map(Some),
        })?;
        Ok(parsed.flatten())
    }

    /// Takes a yes or no; absent is no.
    pub(crate) fn flag(&mut self, name: &str) -> Result<bool, RecordError> {
        Ok(self.read(name, values::flag)?.unwrap_or(false))
    }

    /// Takes an instant.
    pub(crate) fn timestamp(&mut self, name: &str) -> Result<Option<Timestamp>, RecordError> {
        Ok(self.read(name, values::timestamp)?.flatten())
    }

    /// The unknown fields, `null` included.
    pub(crate) fn carried(self) -> Result<Carried, RecordError> {
        self.into_entries()
            .map(|(name, value)| {
                let kept = check_text("name", &name).and_then(|()| values::json(value));
                match kept {
                    Ok(json) => Ok((name.into_owned(), json)),
                    Err(invalid) => Err(RecordError::field(&name, invalid)),
                }
            })
            .collect()
    }

    /// The unknown fields, in their order.
    pub(crate) fn into_entries(self) -> impl Iterator<Item = (Cow<'a, str>, &'a RawValue)> {
        self.entries.into_iter().filter_map(|(name, value)| Some((name, value?)))
    }

    /// The unknown fields, in their order.
    pub(crate) fn rest(&self) -> impl Iterator<Item = (&str, &'a RawValue)> {
        self.entries.iter().filter_map(|(name, value)| Some((name.as_ref(), (*value)?)))
    }

    /// The unknown fields, in alphabetical order.
    pub(crate) fn sorted(&self) -> Vec<(&str, &'a RawValue)> {
        let mut sorted: Vec<_> = self.rest().collect();
        sorted.sort_unstable_by_key(|(name, _)| *name);
        sorted
    }
}

/// An order in which most names differ in the first, cheap comparison: a line has dozens of fields and
/// an import has many lines.
fn search_key(name: &str) -> (usize, &str) {
    (name.len(), name)
}

struct ObjectEntries<'a>(Vec<(Cow<'a, str>, Option<&'a RawValue>)>);

/// By hand, because no derived implementation keeps order, repetitions and raw values together.
impl<'de> Deserialize<'de> for ObjectEntries<'de> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct EntriesVisitor;

        impl<'de> Visitor<'de> for EntriesVisitor {
            type Value = ObjectEntries<'de>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
                let mut entries = Vec::with_capacity(FIELDS_USUAL);
                while let Some((BorrowedText(name), value)) = map.next_entry::<_, &RawValue>()? {
                    entries.push((name, Some(value)));
                }
                Ok(ObjectEntries(entries))
            }
        }

        deserializer.deserialize_map(EntriesVisitor)
    }
}

/// Enough for most issues without growing.
const FIELDS_USUAL: usize = 16;

fn time_without_zone(raw: &RawValue) -> Option<(String, Timestamp)> {
    let text = values::text(raw).ok()?.into_owned();
    let time = Timestamp::parse_without_zone(&text)?;
    Some((text, time))
}
