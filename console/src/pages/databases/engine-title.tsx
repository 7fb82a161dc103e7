/** Mark and display name of an engine; its plain name until the list of engines is loaded. */
import { useQuery } from '@tanstack/react-query';
import { Mark } from '../../parts/mark.tsx';
import { enginesQuery } from './queries/queries.ts';

export function EngineTitle({ engine }: { engine: string }) {
  const { data = [] } = useQuery(enginesQuery);
  const title = data.find((one) => one.engine === engine)?.title ?? engine;
  return (
    // One element: a phone shows each cell as a row, with its elements at the right.
    <span style={{ whiteSpace: 'nowrap' }}>
      <Mark name={title} />
      {title}
    </span>
  );
}
