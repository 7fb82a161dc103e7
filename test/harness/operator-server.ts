/** Operators' database servers, with a user who may create databases. */
import { grantsOf, operatorMysql } from '../../server/testing/operator-mysql.ts';
import { operatorPostgresql } from '../../server/testing/operator-postgresql.ts';

const USER = 'maker';

export async function ownPostgresql(password: string) {
  const { port, url, run, close } = await operatorPostgresql();
  await run(`CREATE ROLE ${USER} LOGIN CREATEDB CREATEROLE PASSWORD '${password}'`);
  return { port, url: url(USER, password), close };
}

/** An empty database for the metadata of a cloud. */
export async function emptyMetadata() {
  const { url, close } = await operatorPostgresql();
  return { url: url('postgres', 'of-the-operator'), close };
}

export async function ownMariadb(password: string) {
  const { port, url, run, close } = await operatorMysql();
  const account = `${USER}@'%'`;
  for (const sql of [`CREATE USER ${account} IDENTIFIED BY '${password}'`, ...grantsOf(account)])
    await run(sql);
  return { port, url: url(USER, password), close };
}
