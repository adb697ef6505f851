//! Dates as `strftime` writes them, in UTC, with English names.

const DAYS: [&str; 7] = ["Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday"];
const MONTHS: [&str; 12] =
    ["January", "February", "March", "April", "May", "June", "July", "August", "September", "October", "November", "December"];

/// The second as the format says, `None` where the format has a letter that is not known.
pub(crate) fn format(format: &str, seconds: u64) -> Option<String> {
    let days = seconds / 86_400;
    let (year, month, day) = date(days);
    let (hour, minute, second) = (seconds / 3600 % 24, seconds / 60 % 60, seconds % 60);
    let weekday = DAYS[((days + 3) % 7) as usize];
    let month_name = MONTHS[month as usize - 1];
    let mut out = String::new();
    let mut letters = format.chars();
    while let Some(letter) = letters.next() {
        if letter != '%' {
            out.push(letter);
            continue;
        }
        let text = match letters.next()? {
            'Y' => year.to_string(),
            'y' => format!("{:02}", year % 100),
            'm' => format!("{month:02}"),
            'd' => format!("{day:02}"),
            'e' => format!("{day:2}"),
            'B' => month_name.into(),
            'b' | 'h' => month_name[..3].into(),
            'A' => weekday.into(),
            'a' => weekday[..3].into(),
            'H' => format!("{hour:02}"),
            'I' => format!("{:02}", (hour + 11) % 12 + 1),
            'p' => if hour < 12 { "AM" } else { "PM" }.into(),
            'M' => format!("{minute:02}"),
            'S' => format!("{second:02}"),
            'F' => format!("{year}-{month:02}-{day:02}"),
            'T' => format!("{hour:02}:{minute:02}:{second:02}"),
            'Z' => "UTC".into(),
            'z' => "+0000".into(),
            '%' => "%".into(),
            // Without a leading zero, as the C library of many systems has it.
            '-' => match letters.next()? {
                'd' => day.to_string(),
                'm' => month.to_string(),
                'H' => hour.to_string(),
                _ => return None,
            },
            _ => return None,
        };
        out.push_str(&text);
    }
    Some(out)
}

/// Year, month and day of a day since 1970.
fn date(days: u64) -> (u64, u64, u64) {
    let leap = |year: u64| year.is_multiple_of(4) && !year.is_multiple_of(100) || year.is_multiple_of(400);
    // 400 years have the same days whichever year they begin with.
    let (mut year, mut left) = (1970 + days / 146_097 * 400, days % 146_097);
    loop {
        let length = if leap(year) { 366 } else { 365 };
        if left < length {
            break;
        }
        left -= length;
        year += 1;
    }
    let february = if leap(year) { 29 } else { 28 };
    let mut month = 1;
    for length in [31, february, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31] {
        if left < length {
            break;
        }
        left -= length;
        month += 1;
    }
    (year, month, left + 1)
}

#[cfg(test)]
mod tests {
    use super::format;

    /// From Python's `datetime.fromtimestamp(seconds, timezone.utc).strftime(format)`.
    #[test]
    fn dates_are_pythons() {
        let every = "%Y %y %m %d %e %B %b %A %a %H %I %p %M %S %F %T %%";
        let cases = [
            (0, "1970 70 01 01  1 January Jan Thursday Thu 00 12 AM 00 00 1970-01-01 00:00:00 %"),
            (951_782_400, "2000 00 02 29 29 February Feb Tuesday Tue 00 12 AM 00 00 2000-02-29 00:00:00 %"),
            (1_735_689_599, "2024 24 12 31 31 December Dec Tuesday Tue 23 11 PM 59 59 2024-12-31 23:59:59 %"),
            (4_107_542_400, "2100 00 03 01  1 March Mar Monday Mon 00 12 AM 00 00 2100-03-01 00:00:00 %"),
            (1_753_963_200, "2025 25 07 31 31 July Jul Thursday Thu 12 12 PM 00 00 2025-07-31 12:00:00 %"),
        ];
        for (seconds, expected) in cases {
            assert_eq!(format(every, seconds).as_deref(), Some(expected));
        }
        assert_eq!(format("%d %b %Y", 1_721_952_000).as_deref(), Some("26 Jul 2024"));
        assert_eq!((format("%Q", 0), format("%", 0)), (None, None));
        assert!(format("%Y", u64::MAX).is_some());
    }
}
