// Links to the pages beside this one.
import { Link } from "@tanstack/react-router";

import { given } from "./search";

export function Pager(props: { page: number; pages: number }) {
  const { page, pages } = props;
  if (pages <= 1) return null;
  const to = (target: number) => (search: object) =>
    given({ ...search, page: target > 1 ? target : undefined });
  return (
    <nav className="pager" aria-label="Pages">
      {page > 1 && (
        <Link to="." search={to(page - 1)} rel="prev">
          Newer
        </Link>
      )}
      <span className="muted">
        Page {page} of {pages}
      </span>
      {page < pages && (
        <Link to="." search={to(page + 1)} rel="next">
          Older
        </Link>
      )}
    </nav>
  );
}
