/** Import of rows over REST. */

import { closeOf, receiveFile } from '../../http/bodies/received-file.ts';
import { defineRoute, type Route } from '../../http/route.ts';
import { invalidField } from '../../platform/errors.ts';
import { DatabasePath } from '../schema.ts';
import { COLUMN_KINDS, type ColumnKind, type EmptyMeaning, type ImportFormat } from './guesses.ts';
import { ImportedTable, ImportForm, ImportQuery } from './import-schema.ts';
import type { FieldChoice, ImportAsk, Imports } from './imports.ts';

export function importRoutes({ imports }: { readonly imports: Imports }): Route[] {
  return [
    defineRoute({
      method: 'POST',
      path: '/api/databases/{database_id}/rows/import',
      name: 'importDatabaseRows',
      livesOn: 'host',
      tag: 'databases',
      summary: 'Add the rows of a CSV or JSON file to a table, which is created if it does not exist',
      description:
        'The import is one transaction: if a row is rejected, nothing is imported, and `lines` of the error lists the ' +
        'first rejected rows. The separator, the header and the column types of a new table are inferred from the ' +
        'beginning of the file. For a collection, JSON is read as Extended JSON and stored unchanged.',
      permission: 'databases:write',
      params: DatabasePath,
      consumes: 'multipart',
      query: ImportQuery,
      body: ImportForm,
      responses: { 200: ImportedTable },
      errors: [
        ...(['database_not_found', 'database_not_ready', 'load_failed', 'invalid_multipart'] as const),
        ...(['query_failed', 'query_timeout', 'data_damaged', 'data_missing'] as const),
        ...(['engine_unavailable', 'host_disk_full', 'out_of_space', 'operation_cancelled'] as const),
        'payload_too_large',
      ],
      handler: (input) => {
        const ask = askOf(input.query);
        const signal = closeOf(input.reply);
        return receiveFile(input, ImportForm, (file) =>
          imports.run(input.principal, input.params.database_id, { file, ask, signal }),
        );
      },
    }),
  ];
}

function askOf(query: ImportQuery): ImportAsk {
  const { table, schema, format, separator, header, empty = 'unquoted', columns, dry_run: isDry } = query;
  return {
    table,
    schema,
    format: format as ImportFormat | undefined,
    separator,
    header,
    empty: empty as EmptyMeaning,
    columns: choicesOf(columns),
    isDry: isDry === true,
  };
}

/** Throws `invalid_request`. */
function choicesOf(text = '{}'): Readonly<Record<string, FieldChoice>> {
  let found: unknown;
  try {
    found = JSON.parse(text);
  } catch {
    throw invalidField('columns', 'is not JSON');
  }
  if (!isObject(found))
    throw invalidField('columns', 'must be an object whose members are fields of the file');
  for (const [field, choice] of Object.entries(found)) if (!isChoice(choice)) throw wrongChoice(field);
  return found as Readonly<Record<string, FieldChoice>>;
}

const isObject = (value: unknown): value is Record<string, unknown> =>
  typeof value === 'object' && value !== null && !Array.isArray(value);

function isChoice(choice: unknown): choice is FieldChoice {
  if (choice === null) return true;
  if (!isObject(choice) || Object.keys(choice).some((key) => key !== 'name' && key !== 'type')) return false;
  const { name = 'x', type = 'text' } = choice;
  return typeof name === 'string' && name !== '' && COLUMN_KINDS.includes(type as ColumnKind);
}

function wrongChoice(field: string) {
  const types = COLUMN_KINDS.join(', ');
  return invalidField('columns', `${field} must be null or {"name":"…","type":"…"}, with a type of ${types}`);
}
