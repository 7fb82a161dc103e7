/**
 * Rows of a server, which the main process writes as JSON a part at a time, so that other requests are
 * answered in between.
 */
import { setImmediate as turn } from 'node:timers/promises';
import type { QueryResult, ResultColumn } from '../../../databases/engine.ts';
import { JsonText } from '../../../platform/json/json.ts';

/** About a millisecond's work. */
const PART_CHARACTERS = 256 * 1024;

interface Found {
  readonly columns: readonly ResultColumn[];
  /** Each as JSON, preferably written on demand. */
  readonly rows: Iterable<string>;
  readonly affected: number | null;
  readonly truncated: boolean;
}

export async function writtenResult({ columns, rows, affected, truncated }: Found): Promise<QueryResult> {
  const pieces: Uint8Array[] = [];
  let rowCount = 0;
  let text = '[';
  for (const row of rows) {
    text += (rowCount++ === 0 ? '' : ',') + row;
    if (text.length < PART_CHARACTERS) continue;
    await othersTurn();
    pieces.push(Buffer.from(text));
    text = '';
    await othersTurn();
  }
  pieces.push(Buffer.from(`${text}]`));
  return { columns: JsonText.of(columns), rows: new JsonText(pieces), rowCount, affected, truncated };
}

/** Lets others go first: sockets are read between the first turn and the second. */
async function othersTurn(): Promise<void> {
  await turn();
  await turn();
}
