// The button below a list that grows.
export function LoadMore(props: {
  label: string;
  query: { hasNextPage: boolean; isFetchingNextPage: boolean; fetchNextPage: () => unknown };
}) {
  const { hasNextPage, isFetchingNextPage, fetchNextPage } = props.query;
  if (!hasNextPage) return null;
  return (
    <div className="pager">
      <button type="button" disabled={isFetchingNextPage} onClick={() => void fetchNextPage()}>
        {isFetchingNextPage ? "Loading…" : props.label}
      </button>
    </div>
  );
}
