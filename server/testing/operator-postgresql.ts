/** An operator's PostgreSQL server. */
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { Client } from 'pg';
import { findPrograms } from '../drivers/engines/postgresql/postgresql-programs.ts';
import { CERT_FILE, KEY_FILE, type ServerTls } from '../drivers/managed-server/links/server-tls.ts';
import { type OperatorServer, operatorServer } from './operator-server.ts';

const PASSWORD = 'of-the-operator';
const HBA = 'hba.conf';
const url = (port: number, user: string, password: string) =>
  `postgresql://${user}:${password}@127.0.0.1:${port}/postgres`;

/** `tls`: it accepts only connections with TLS. */
export async function operatorPostgresql({
  tls = null,
}: {
  readonly tls?: ServerTls | null;
} = {}): Promise<OperatorServer> {
  const programs = await findPrograms(null);
  if (!('bin' in programs)) throw new Error(programs.reason);
  const { bin, readOnly } = programs;
  const common = { readOnly, env: { ...programs.env, TZ: 'UTC', LANG: 'C.UTF-8' } };
  return operatorServer({
    name: 'postgresql',
    stop: 'SIGINT',
    maker: (home, seen) => {
      writeFileSync(join(home, 'password'), PASSWORD);
      writeFileSync(join(home, HBA), 'hostssl all all all scram-sha-256\n');
      tls?.install(home, null);
      const words = ['-D', join(seen, 'data'), '-U', 'postgres', '--pwfile', join(seen, 'password')];
      const args = [...words, '--auth=scram-sha-256', '--encoding=UTF8', '--locale=C.UTF-8', '--no-sync'];
      return { ...common, command: join(bin, 'initdb'), args };
    },
    server: (seen, port) => {
      // Just-in-time compilation needs libLLVM, which some hosts lack.
      const options = ['jit=off', 'listen_addresses=127.0.0.1', 'unix_socket_directories=', `port=${port}`];
      const withTls = [`hba_file=${join(seen, HBA)}`, 'ssl=on', `ssl_cert_file=${join(seen, CERT_FILE)}`];
      if (tls !== null) options.push(...withTls, `ssl_key_file=${join(seen, KEY_FILE)}`);
      const args = ['-D', join(seen, 'data'), ...options.flatMap((option) => ['-c', option])];
      return { ...common, command: join(bin, 'postgres'), args };
    },
    url,
    run: async (port, sql) => {
      const client = new Client({
        connectionString: url(port, 'postgres', PASSWORD),
        ssl: tls === null ? false : { ca: String(tls.ca) },
      });
      client.on('error', () => {});
      await client.connect();
      return client
        .query(sql)
        .then(({ rows }) => rows)
        .finally(() => client.end());
    },
  });
}
