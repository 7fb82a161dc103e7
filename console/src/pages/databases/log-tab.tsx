/** What the server told of a database last. */
import { useQuery } from '@tanstack/react-query';
import type { Database } from '../../../../sdk/index.ts';
import { LogView } from '../../parts/log-view.tsx';
import { text } from '../../texts/text.ts';
import { logQuery } from './queries.ts';

const words = text.databases.log;

export function LogTab({ database: { database_id: id, name, state } }: { database: Database }) {
  const log = useQuery(logQuery(id));
  return (
    <LogView
      query={log}
      lead={words.lead}
      empty={words.empty}
      fileName={`${name}.log`}
      isLive={state === 'ready' || state === 'read_only'}
    />
  );
}
