//! How are lists paged?

pub(super) mod described;

use serde::Serialize;

use engine::delivery::backlog::Sequence;
use engine::query::{Page, PageRequest};

use super::fields::Fields;

/// The usual maximum page size.
const SIZE_MAX: u32 = 100;

/// The default page size.
const SIZE_DEFAULT: u32 = 10;

/// Reads the end of the previous page of a list that is read by number.
pub(super) fn cursor(text: &str) -> Result<Sequence, &'static str> {
    let number = text.parse().map(Sequence);
    number.map_err(|_| "must be the nextCursor of the previous page")
}

/// One page of a list.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct PageBody<T> {
    items: Vec<T>,
    page: u32,
    page_amount: u64,
}

impl<T> PageBody<T> {
    /// A page; a list has at least one page, and a page beyond the last is empty.
    pub(super) fn of<S>(wanted: PageRequest, page: Page<S>, show: impl FnMut(S) -> T) -> Self {
        let page_amount = pages(page.total, wanted.size);
        let items = page.items.into_iter().map(show).collect();
        Self {
            items,
            page: wanted.number,
            page_amount,
        }
    }

    /// A list on one page.
    pub(super) fn whole(items: Vec<T>) -> Self {
        Self {
            items,
            page: 1,
            page_amount: 1,
        }
    }
}

/// The number of pages of a list, which has at least one.
pub(super) fn pages(total: u64, size: u32) -> u64 {
    total.div_ceil(u64::from(size.max(1))).max(1)
}

/// The requested page of a list with the usual maximum page size.
pub(super) fn wanted(fields: &mut Fields) -> PageRequest {
    wanted_of(fields, SIZE_MAX)
}

/// The requested page of a list with this maximum page size.
pub(super) fn wanted_of(fields: &mut Fields, size_max: u32) -> PageRequest {
    let number = fields.number("page", 1..=u32::MAX).unwrap_or(1);
    let size = size_wanted(fields, size_max);
    PageRequest { number, size }
}

/// The requested page size of a list that is read by cursor.
pub(super) fn wanted_size(fields: &mut Fields) -> u32 {
    size_wanted(fields, SIZE_MAX)
}

fn size_wanted(fields: &mut Fields, size_max: u32) -> u32 {
    let size = fields.number("pageSize", 1..=size_max);
    size.unwrap_or(SIZE_DEFAULT)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_list_has_as_many_pages_as_its_items_fill_and_at_least_one() {
        for (total, pages) in [(0, 1), (1, 1), (10, 1), (11, 2), (100, 10)] {
            let page = Page {
                items: vec![(); 0],
                total,
            };
            let body = PageBody::of(
                PageRequest {
                    number: 1,
                    size: 10,
                },
                page,
                |it| it,
            );
            assert_eq!(body.page_amount, pages, "{total}");
        }
    }

    #[test]
    fn the_default_page_is_the_first_ten() {
        let mut fields = Fields::of_query(vec![]);
        assert_eq!(
            wanted(&mut fields),
            PageRequest {
                number: 1,
                size: 10
            }
        );
        assert!(fields.finish(Some(())).is_ok());
    }

    #[test]
    fn a_page_out_of_range_is_a_fault() {
        for (name, value) in [("page", "0"), ("pageSize", "0"), ("pageSize", "26")] {
            let mut fields = Fields::of_query(vec![(name.to_owned(), value.to_owned())]);
            wanted_of(&mut fields, 25);
            assert!(fields.finish(Some(())).is_err(), "{name}={value}");
        }
    }
}
