/** An operator's MariaDB. */
import { mkdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { createConnection, type RowDataPacket } from 'mysql2/promise';
import { nativeHash } from '../drivers/engines/mysql/dialects.ts';
import { findPrograms } from '../drivers/engines/mysql/mysql-programs.ts';
import { CERT_FILE, KEY_FILE, type ServerTls } from '../drivers/managed-server/links/server-tls.ts';
import { patienceMs } from '../platform/host/host-facts.ts';
import { type OperatorServer, operatorServer } from './operator-server.ts';

const PASSWORD = 'of-the-operator';
const CONNECT_MS = 2000;
const url = (port: number, user: string, password: string) => `mysql://${user}:${password}@127.0.0.1:${port}`;

/** Exactly the grants that Cloudlet requires; for an existing user. */
export function grantsOf(user: string): string[] {
  return [
    `GRANT CREATE USER, PROCESS, CONNECTION ADMIN ON *.* TO ${user}`,
    ...['d', 't'].map((name) => `GRANT ALL PRIVILEGES ON \`${name}\\_%\`.* TO ${user} WITH GRANT OPTION`),
    `GRANT SELECT ON mysql.* TO ${user}`,
    `GRANT UPDATE ON mysql.proc TO ${user}`,
  ];
}

/** `tls`: it accepts only connections with TLS. */
export async function operatorMysql({
  tls = null,
}: {
  readonly tls?: ServerTls | null;
} = {}): Promise<OperatorServer> {
  const programs = await findPrograms(null);
  if (!('server' in programs)) throw new Error(programs.reason);
  const { server: command, share, env, readOnly } = programs;
  const words = (seen: string) => [
    '--no-defaults',
    `--datadir=${join(seen, 'data')}`,
    `--lc-messages-dir=${share}`,
    `--character-sets-dir=${join(share, 'charsets')}`,
    '--innodb-buffer-pool-size=32M',
    ...(process.getuid?.() === 0 ? ['--user=root'] : []),
  ];
  const administrator = JSON.stringify({
    access: 0,
    plugin: 'mysql_native_password',
    authentication_string: nativeHash(PASSWORD),
  }).replace('"access":0', '"access":18446744073709551615');
  const tables = ['mysql_system_tables.sql', 'mysql_system_tables_data.sql'];
  const input = [
    'CREATE DATABASE mysql;',
    'USE mysql;',
    'SET @auth_root_socket = NULL;',
    ...tables.map((name) => readFileSync(join(share, name), 'utf8')),
    "DELETE FROM global_priv WHERE User <> 'mariadb.sys';",
    `INSERT INTO global_priv VALUES ('%', 'root', '${administrator}');`,
    '',
  ].join('\n');
  return operatorServer({
    name: 'mysql',
    stop: 'SIGTERM',
    maker: (home, seen) => {
      mkdirSync(join(home, 'data'), { mode: 0o777 });
      tls?.install(home, null);
      return { command, args: [...words(seen), '--bootstrap'], env, readOnly, input };
    },
    server: (seen, port) => {
      const listen = [`--port=${port}`, '--bind-address=127.0.0.1', '--socket=s', '--skip-name-resolve'];
      const files = [`--ssl-cert=${join(seen, CERT_FILE)}`, `--ssl-key=${join(seen, KEY_FILE)}`];
      const withTls = tls === null ? [] : [...files, '--require-secure-transport=ON'];
      return { command, args: [...words(seen), ...listen, ...withTls], env, readOnly };
    },
    url,
    run: async (port, sql) => {
      const uri = url(port, 'root', PASSWORD);
      const connection = await createConnection({
        uri,
        connectTimeout: patienceMs(CONNECT_MS),
        ...(tls === null ? {} : { ssl: { ca: String(tls.ca) } }),
      });
      connection.on('error', () => {});
      return connection
        .query<RowDataPacket[]>(sql)
        .then(([rows]) => rows)
        .finally(() => connection.destroy());
    },
  });
}
