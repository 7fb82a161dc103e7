/** Every change of the schema, in order. Append only: a migration that was released is never edited. */
import { initial } from './0001-initial.ts';
import { machines } from './0002-machines.ts';

export interface Migration {
  /** 1, 2, 3, … without gaps. */
  readonly number: number;
  readonly name: string;
  readonly sql: string;
}

export const migrations: readonly Migration[] = [
  { number: 1, name: 'initial', sql: initial },
  { number: 2, name: 'machines', sql: machines },
];
