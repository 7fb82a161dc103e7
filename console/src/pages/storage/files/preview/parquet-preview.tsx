/** A Parquet file: its columns with types, and its first rows. */
import { Text } from '@mantine/core';
import { useQuery } from '@tanstack/react-query';
import type { StorageObjectDetails } from '../../../../../../sdk/index.ts';
import { cloud } from '../../../../cloud.ts';
import { Refused } from '../../../../parts/forms/warning.tsx';
import { parquetText as words } from '../../../../texts/parquet-text.ts';
import classes from '../../storage.module.css';
import { RowTable } from '../row-table.tsx';
import type { FromWorker, ToWorker } from './parquet-messages.ts';
import type { ParquetReason, ParquetTable } from './parquet-reading.ts';

/** A worker that computes for this long is terminated. */
const LONGEST_MS = 15_000;

type Outcome = { readonly table: ParquetTable } | { readonly reason: ParquetReason };

export function ParquetPreview({ object }: { object: StorageObjectDetails }) {
  const { id, version_id, bucket } = object;
  const { data, error } = useQuery({
    queryKey: ['files', bucket, 'parquet', id, version_id],
    queryFn: ({ signal }) => readBeside(object, signal),
    staleTime: Number.POSITIVE_INFINITY,
    gcTime: 60_000,
  });
  if (error !== null) return <Refused error={error} />;
  if (data === undefined) return <Said>{words.reading}</Said>;
  if ('reason' in data) return <Said>{words.reasons[data.reason]}</Said>;
  const { columns, columnCount, rows, rowCount, shown } = data.table;
  return (
    <div className={classes.tablePreview}>
      <RowTable columns={columns.slice(0, shown)} rows={rows} />
      <Said>{words.sum({ rows: rows.length, rowCount, columns: shown, columnCount })}</Said>
      {columns.length > shown && (
        <Said>{words.more(columns.slice(shown).map(({ name, type }) => `${name} ${type}`))}</Said>
      )}
    </div>
  );
}

function Said({ children }: { children: string }) {
  return (
    <Text size="xs" c="dimmed" p={6}>
      {children}
    </Text>
  );
}

/** The page reads the ranges that the worker asks for: only the page has the session. */
function readBeside(object: StorageObjectDetails, signal: AbortSignal): Promise<Outcome> {
  const { id, version_id, size } = object;
  const worker = new Worker(new URL('./parquet-worker.ts', import.meta.url), { type: 'module' });
  const say = (message: ToWorker, moved: Transferable[] = []) => worker.postMessage(message, moved);
  let timer: ReturnType<typeof setTimeout>;
  return new Promise<Outcome>((resolve, reject) => {
    const wait = () => {
      clearTimeout(timer);
      timer = setTimeout(() => resolve({ reason: 'tooLong' }), LONGEST_MS);
    };
    const read = async (start: number, end: number) => {
      const range = `bytes=${start}-${end - 1}`;
      return (await cloud.downloadObject(id, { version_id }, { signal, range })).arrayBuffer();
    };
    worker.onmessage = async ({ data }: MessageEvent<FromWorker>) => {
      clearTimeout(timer);
      if (data.kind === 'table') return resolve({ table: data.table });
      if (data.kind === 'refused') return resolve({ reason: data.reason });
      try {
        const bytes = await read(data.start, data.end);
        wait();
        say({ kind: 'bytes', id: data.id, bytes }, [bytes]);
      } catch (error) {
        reject(error);
      }
    };
    worker.onerror = () => resolve({ reason: 'notLoaded' });
    signal.addEventListener('abort', () => reject(signal.reason));
    wait();
    say({ kind: 'open', size });
  }).finally(() => {
    clearTimeout(timer);
    worker.terminate();
  });
}
