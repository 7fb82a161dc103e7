/** The query page of a database. */
import { count, counted } from './counted.ts';

export const queries = {
  editor: 'Query',
  run: 'Run',
  cancel: 'Cancel',
  cancelled: 'Cancelled.',
  readOnly: 'Read-only',
  readOnlyLead: 'The server rejects statements that write.',
  history: 'History',
  historyEmpty: 'Queries that you run are listed here. They are stored only in this browser.',
  clearHistory: 'Clear history',
  runSelected: 'Run selection',
  position: (line: number, column: number) => `Line ${line}, column ${column}`,
  limits: (seconds: number) =>
    'Runs the selection, or everything, one statement after the other. ' +
    `Each statement is limited to 1,000 rows and ${counted(seconds, 'second')}.`,
  each: 'Each statement is committed separately; BEGIN and COMMIT do not group them.',
  turnOff: 'Read-only is on. To write, turn it off and run the query again.',
  notJson: 'This is not valid JSON. A command is an object, for example { "find": "things" }.',
  rows: (rows: number) => counted(rows, 'row'),
  changed: (rows: number) => `${count(rows)} changed`,
  took: (ms: string) => `${ms} ms`,
  truncated: 'The result was truncated. Add LIMIT to read fewer rows, or download a dump to get all of them.',
  csv: 'CSV',
  json: 'JSON',
  csvLead:
    'For spreadsheets: text that a spreadsheet would treat as a formula is prefixed with an apostrophe. JSON has the values unchanged.',
  result: 'Result',
  null: 'NULL',
  noRows: 'The query returned no rows.',
  number: 'Row',
  pages: 'Pages of the result',
  previous: 'Previous page',
  next: 'Next page',
  range: (from: number, to: number) => `Rows ${count(from)} to ${count(to)}`,
  again: 'The query runs again for each page: give it an ORDER BY.',
};
