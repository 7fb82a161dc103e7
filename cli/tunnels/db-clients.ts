/** The programs of each engine, and how they are told a password: never on their command line. */
import { spawn, spawnSync } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { DatabaseConnection } from '../../sdk/index.ts';
import { withVariables } from '../environment.ts';
import { EXIT, type ExitCode } from '../failures.ts';

const LOOPBACK = '127.0.0.1';

/** A program with what it needs to log in at a port of this computer. `folder`: private, for files. */
interface Call {
  readonly program: string;
  readonly args: readonly string[];
  readonly env: Readonly<Record<string, string>>;
}

interface Login {
  readonly connection: DatabaseConnection;
  /** PEM; null: the certificate is not one of the cloud's authority. */
  readonly ca: string | null;
  readonly port: number;
  readonly folder: string;
}

const fileIn = (folder: string, name: string, text: string): string => {
  const path = join(folder, name);
  writeFileSync(path, text, { flag: 'wx', mode: 0o600 });
  return path;
};

function psql({ connection, ca, port, folder }: Login): Call {
  const { host, username, password = '', database, tls } = connection;
  const env: Record<string, string> = {
    PGHOST: tls ? host : LOOPBACK,
    PGHOSTADDR: LOOPBACK,
    PGPORT: String(port),
    PGUSER: username,
    PGDATABASE: database,
    PGPASSWORD: password,
    PGSSLMODE: tls ? (ca === null ? 'require' : 'verify-full') : 'disable',
  };
  if (ca !== null) env.PGSSLROOTCERT = fileIn(folder, 'ca.pem', ca);
  return { program: 'psql', args: [], env };
}

/** In the quotes of an option file. A line of its own would be another option. */
function optionText(text: string): string {
  return `"${text.replaceAll('\\', '\\\\').replaceAll('"', '\\"').replaceAll('\n', '\\n').replaceAll('\r', '\\r')}"`;
}

function mariadb(program: string): (login: Login) => Call {
  return ({ connection, ca, port, folder }) => {
    const { username, password = '', database, tls } = connection;
    const lines = ['[client]', `host=${LOOPBACK}`, `port=${port}`, 'protocol=tcp'];
    lines.push(`user=${optionText(username)}`, `password=${optionText(password)}`);
    if (tls) lines.push('ssl');
    if (ca !== null) lines.push(`ssl-ca=${optionText(fileIn(folder, 'ca.pem', ca))}`);
    const options = fileIn(folder, 'client.cnf', `${lines.join('\n')}\n`);
    return { program, args: [`--defaults-extra-file=${options}`, `--database=${database}`], env: {} };
  };
}

function mongosh({ connection, ca, port, folder }: Login): Call {
  const uri = new URL(connection.uri);
  uri.host = `${LOOPBACK}:${port}`;
  uri.searchParams.delete('tlsCAFile');
  uri.searchParams.set('directConnection', 'true');
  const tls = ca === null ? '' : `, { tlsCAFile: ${JSON.stringify(fileIn(folder, 'ca.pem', ca))} }`;
  const script = fileIn(folder, 'connect.js', `db = connect(${JSON.stringify(uri.href)}${tls});\n`);
  return { program: 'mongosh', args: ['--nodb', '--quiet', '--shell', script], env: {} };
}

/** Each engine's, the preferred first. */
const CLIENTS: Readonly<Record<string, readonly { program: string; call: (login: Login) => Call }[]>> = {
  postgresql: [{ program: 'psql', call: psql }],
  mysql: ['mariadb', 'mysql'].map((program) => ({ program, call: mariadb(program) })),
  mongodb: [{ program: 'mongosh', call: mongosh }],
};

/** Where a missing program comes from, by engine. */
export const PACKAGES: Readonly<Record<string, string>> = {
  postgresql: 'postgresql-client',
  mysql: 'mariadb-client',
  mongodb: 'mongosh',
};

/** The client of that engine on this computer, or undefined. */
export function installedClient(engine: string): ((login: Login) => Call) | undefined {
  return CLIENTS[engine]?.find(({ program }) => {
    return spawnSync(program, ['--version'], { stdio: 'ignore' }).error === undefined;
  })?.call;
}

/** Runs it at a port of this computer with `args` behind its own; resolves with its exit code. */
export async function runClient(
  call: (login: Login) => Call,
  login: Omit<Login, 'folder'>,
  args: readonly string[],
): Promise<ExitCode> {
  const folder = mkdtempSync(join(tmpdir(), 'cloudlet-'));
  const remove = () => rmSync(folder, { recursive: true, force: true });
  process.once('exit', remove);
  try {
    const { program, args: own, env } = call({ ...login, folder });
    const child = spawn(program, [...own, ...args], { stdio: 'inherit', env: withVariables(env) });
    // The program and its terminal settle an interrupt between themselves.
    for (const signal of ['SIGINT', 'SIGTERM'] as const) process.on(signal, () => {});
    return await new Promise((resolve, reject) => {
      child.once('error', reject).once('close', (code) => resolve((code ?? EXIT.failure) as ExitCode));
    });
  } finally {
    remove();
  }
}
