/** The diagram of tables and their keys. */
import { count, counted } from '../counted.ts';

export const schema = {
  lead: (tables: number, keys: number) => `${counted(tables, 'table')}, ${counted(keys, 'foreign key')}`,
  diagram: 'Tables and their keys',
  asList: 'As a list',
  list: 'Tables with their keys',
  more: (left: number) => `${count(left)} more`,
  key: (columns: readonly string[]) =>
    columns.length === 0 ? 'no primary key' : `primary key: ${columns.join(', ')}`,
};
