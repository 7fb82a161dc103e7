/** Import of a file as rows of a table. */
import { counted } from '../counted.ts';

export const imports = {
  title: (file: string) => `Import ${file}`,
  table: 'Table',
  collection: 'Collection',
  intoCollection: (isNew: boolean) =>
    isNew
      ? 'There is no such collection: it will be created.'
      : 'The documents are added to this collection.',
  target: (isNew: boolean) =>
    isNew ? 'There is no such table: it will be created.' : 'The rows are added to this table.',
  separator: 'Separator',
  separators: { ',': 'Comma', ';': 'Semicolon', '\t': 'Tab', '|': 'Bar |' } as Readonly<
    Record<string, string>
  >,
  empty: 'Empty fields',
  meanings: { unquoted: 'NULL, but "" is empty text', null: 'NULL', text: 'Empty text' },
  header: 'First row contains the column names',
  columns: 'Columns',
  whole: 'The objects of this file are stored unchanged, as Extended JSON.',
  field: 'In the file',
  column: 'Column',
  columnOf: (field: string) => `Column for ${field}`,
  type: 'Type',
  typeOf: (field: string) => `Type of ${field}`,
  types: {
    text: 'Text',
    integer: 'Integer',
    number: 'Number',
    boolean: 'True or false',
    date: 'Date',
    timestamp: 'Time',
    bytes: 'Bytes',
    json: 'JSON',
  },
  examples: 'First values',
  sent: (percent: number) => `${percent} % uploaded`,
  submit: 'Import rows',
  done: (rows: number, table: string) => `${counted(rows, 'row')} added to ${table}`,
};
