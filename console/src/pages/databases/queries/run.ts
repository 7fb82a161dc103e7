/** Statements: generated for a table, run one after another, with the position of a failure. */

import { useMutation, useQueryClient } from '@tanstack/react-query';
import { useRef, useState } from 'react';
import {
  CloudError,
  type DatabaseQuery,
  type DatabaseQueryResult,
  type DatabaseTable,
} from '../../../../../sdk/index.ts';
import { cloud } from '../../../cloud.ts';
import type { Grammar } from './grammar.ts';
import type { Range } from './query-editor.tsx';
import type { Statement } from './statements.ts';

interface Done {
  readonly statement: string;
  readonly body: DatabaseQuery;
  readonly result: DatabaseQueryResult;
}

interface Run {
  readonly statements: readonly Statement[];
  readonly isReadOnly: boolean;
}

/** The body of the call. Throws SyntaxError if a command is not JSON. */
export function bodyOf(grammar: Grammar, statement: string, isReadOnly: boolean): DatabaseQuery {
  const read_only = isReadOnly ? {} : { read_only: false };
  if (grammar !== 'documents') return { statement, ...read_only };
  return { command: JSON.parse(statement) as Record<string, unknown>, ...read_only };
}

/** Stops at the first failure; `done` has the earlier results. */
export function useRun(id: string, grammar: Grammar) {
  const queryClient = useQueryClient();
  const abort = useRef<AbortController | null>(null);
  const running = useRef<string | null>(null);
  const [done, setDone] = useState<readonly Done[]>([]);
  const [wrong, setWrong] = useState<Range | null>(null);
  const mutation = useMutation({
    mutationFn: async ({ statements, isReadOnly }: Run) => {
      const { signal } = abort.current ?? new AbortController();
      for (const statement of statements) {
        try {
          running.current = newQueryId();
          const body = { ...bodyOf(grammar, statement.text, isReadOnly), query_id: running.current };
          const result = await cloud.queryDatabase(id, body, { signal });
          setDone((before) => [...before, { statement: statement.text, body, result }]);
        } catch (error) {
          setWrong(wrongPlace(statement, error, statements.length > 1));
          throw error;
        }
      }
    },
    meta: { shown: true },
    onMutate: () => {
      abort.current = new AbortController();
      setDone([]);
      setWrong(null);
    },
    onSettled: (_, __, { isReadOnly }) => {
      if (!isReadOnly) void queryClient.invalidateQueries({ queryKey: ['databases', id] });
    },
  });
  const cancel = () => {
    // A proxy may keep its connection to the cloud after ours has ended. The query may have ended
    // by now.
    if (running.current !== null) cloud.cancelDatabaseQuery(id, running.current).catch(() => {});
    abort.current?.abort();
  };
  const reset = () => {
    mutation.reset();
    setDone([]);
    setWrong(null);
  };
  return { ...mutation, reset, done, wrong, cancel };
}

/** Also in pages over HTTP, which have no randomUUID. */
function newQueryId(): string {
  return Array.from(crypto.getRandomValues(new Uint32Array(4)), (part) => part.toString(36)).join('-');
}

/** The word at the error; if unknown, the whole statement, if there are several. */
function wrongPlace({ text, from }: Statement, error: unknown, isOneOfMany: boolean): Range | null {
  const at = wrongCharacter(text, error);
  if (at === null) return isOneOfMany ? { from, to: from + text.length } : null;
  const start = Math.min(at, text.length - 1);
  const [word = ''] = /^(?:[\w.]+|.)/s.exec(text.slice(start)) ?? [];
  return { from: from + start, to: from + start + word.length };
}

function wrongCharacter(text: string, error: unknown): number | null {
  if (error instanceof SyntaxError) {
    const position = /position (\d+)/.exec(error.message)?.[1];
    return position === undefined ? null : Number(position);
  }
  if (!(error instanceof CloudError) || error.position === undefined) return null;
  // Engines count characters of Unicode.
  return [...text].slice(0, error.position - 1).join('').length;
}

/** `sales.orders`; the default schema is omitted. */
export function nameOf({ schema, name }: DatabaseTable): string {
  return schema === null || schema === 'public' ? name : `${schema}.${name}`;
}

interface Page {
  readonly limit: number;
  readonly skip?: number;
}

/** Quotation marks around a name; default: the standard's. */
const QUOTES: Readonly<Partial<Record<Grammar, string>>> = { mysql: '`' };

/** Reads a table's rows in primary-key order, or all that fit one page. */
export function selectOf(grammar: Grammar, table: DatabaseTable, { limit, skip = 0 }: Page): string {
  if (grammar === 'documents') {
    const skipped = skip === 0 ? '' : `"skip": ${skip}, `;
    return `{ "find": ${JSON.stringify(table.name)}, "filter": {}, "sort": { "_id": 1 }, ${skipped}"limit": ${limit} }`;
  }
  const mark = QUOTES[grammar] ?? '"';
  const quote = (name: string) => mark + name.replaceAll(mark, mark + mark) + mark;
  const name = [table.schema, table.name].filter((part) => part !== null).map(quote);
  const keys = table.columns.filter((column) => column.primary_key).map((column) => quote(column.name));
  const order = keys.length === 0 ? '' : ` ORDER BY ${keys.join(', ')}`;
  return `SELECT * FROM ${name.join('.')}${order} LIMIT ${limit}${skip === 0 ? '' : ` OFFSET ${skip}`}`;
}
