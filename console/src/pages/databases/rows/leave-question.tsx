/** Changes of rows that did not run: leaving the table, the page or the console asks first. */
import { useBlocker } from '@tanstack/react-router';
import { Confirm } from '../../../parts/forms/dialog.tsx';
import { rowsText as words } from '../../../texts/rows-text.ts';

/** A filter and an order keep the changes. */
const KEPT_BY = new Set(['where', 'by', 'match']);

interface Place {
  readonly pathname: string;
  readonly search: object;
}

function isLeft(current: Place, next: Place): boolean {
  if (current.pathname !== next.pathname) return true;
  const rest = ({ search }: Place) =>
    JSON.stringify(
      Object.entries(search)
        .filter(([name]) => !KEPT_BY.has(name))
        .sort(),
    );
  return rest(current) !== rest(next);
}

export function LeaveQuestion({ changes }: { readonly changes: number }) {
  const { status, proceed, reset } = useBlocker({
    shouldBlockFn: ({ current, next }) => changes > 0 && isLeft(current, next),
    enableBeforeUnload: () => changes > 0,
    withResolver: true,
  });
  return (
    <Confirm
      isOpen={status === 'blocked'}
      title={words.leave(changes)}
      action={words.leaveSubmit}
      onConfirm={() => proceed?.()}
      onClose={() => reset?.()}
    >
      {words.leaveLead}
    </Confirm>
  );
}
