/** A PostgreSQL as an operator has one, with a user who may make databases and roles. */
import { operatorPostgresql } from '../../server/testing/operator-postgresql.ts';

const USER = 'maker';

export async function operatorServer(password: string) {
  const { port, url, run, close } = await operatorPostgresql();
  await run(`CREATE ROLE ${USER} LOGIN CREATEDB CREATEROLE PASSWORD '${password}'`);
  return { port, url: url(USER, password), close };
}
