/** The configurations of deploy/, filled in for a test and run as the test's user, on its own ports. */
import assert from 'node:assert/strict';
import { type ChildProcess, execFileSync, spawn } from 'node:child_process';
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { freePorts } from '../harness/free-port.ts';

/** Names that always resolve to this host. */
export const CLOUD = 'cloud.localhost';
export const DATA = 'data.localhost';
/** Domain of host names of machines. */
export const APPS = 'apps.localhost';

export interface Ports {
  readonly https: number;
  readonly http: number;
  readonly api: number;
  readonly data: number;
}

export async function portsOfProxy(): Promise<Ports> {
  const [https = 0, http = 0, api = 0, data = 0] = await freePorts(4);
  return { https, http, api, data };
}

function recipe(name: string): string {
  return readFileSync(new URL(`../../deploy/${name}`, import.meta.url), 'utf8');
}

/** Replaces texts, all of which must be present. */
function fill(text: string, values: readonly (readonly [find: string, value: string])[]): string {
  return values.reduce((filled, [find, value]) => {
    assert.ok(filled.includes(find), `${find} is not in the recipe`);
    return filled.replaceAll(find, value);
  }, text);
}

/** The configuration inside Debian's nginx.conf. `folder` belongs to nginx only. */
export function startNginx(folder: string, { https, http, api, data }: Ports): ChildProcess {
  const [key, certificate] = [join(folder, 'key.pem'), join(folder, 'certificate.pem')];
  const made = [
    '-newkey',
    'ec',
    '-pkeyopt',
    'ec_paramgen_curve:prime256v1',
    '-nodes',
    '-subj',
    `/CN=${CLOUD}`,
  ];
  execFileSync('openssl', ['req', '-x509', ...made, '-keyout', key, '-out', certificate], { stdio: 'pipe' });
  const site = fill(recipe('nginx.conf'), [
    ['  listen [::]:80;\n', ''],
    ['  listen [::]:443 ssl http2;\n', ''],
    ['listen 80;', `listen 127.0.0.1:${http};`],
    ['listen 443 ', `listen 127.0.0.1:${https} `],
    ['/etc/letsencrypt/live/cloud.example.org/fullchain.pem', certificate],
    ['/etc/letsencrypt/live/cloud.example.org/privkey.pem', key],
    ['/etc/letsencrypt/live/apps.example.net/fullchain.pem', certificate],
    ['/etc/letsencrypt/live/apps.example.net/privkey.pem', key],
    ['apps.example.net', APPS],
    ['cloud.example.org', CLOUD],
    ['data.example.org', DATA],
    ['127.0.0.1:8080', `127.0.0.1:${api}`],
    ['127.0.0.1:9000', `127.0.0.1:${data}`],
  ]);
  const temporary = ['client_body', 'proxy', 'fastcgi', 'uwsgi', 'scgi'].map(
    (name) => `${name}_temp_path ${join(folder, name)};`,
  );
  // Root of a user namespace has no other user to give folders to.
  const own = ['user root;', `pid ${join(folder, 'pid')};`];
  const around = ['daemon off;', 'master_process off;', ...own, 'events {}', 'http {'];
  const file = join(folder, 'nginx.conf');
  writeFileSync(file, [...around, 'access_log off;', ...temporary, site, '}'].join('\n'));
  // Debian's PATH for ordinary users lacks it.
  const env = { PATH: `${process.env.PATH}:/usr/sbin` };
  const words = ['-p', folder, '-c', file, '-e', join(folder, 'error.log')];
  return spawn('nginx', words, { env, stdio: 'ignore' });
}

/** Names below localhost get certificates from Caddy itself, which this host must not trust. */
export function startCaddy(folder: string, ports: Ports): ChildProcess {
  const { api, data } = ports;
  const nodes = { CLOUDLET_API: `127.0.0.1:${api}`, CLOUDLET_DATA: `127.0.0.1:${data}` };
  return startCaddyOf('Caddyfile', { folder, ports, nodes });
}

interface CaddyOf {
  readonly folder: string;
  readonly ports: Pick<Ports, 'https' | 'http'>;
  /** The address of Cloudlet in the configuration. */
  readonly nodes: Readonly<Record<string, string>>;
}

export function startCaddyOf(name: string, { folder, ports: { https, http }, nodes }: CaddyOf): ChildProcess {
  const options = ['admin off', 'skip_install_trust', `http_port ${http}`, `https_port ${https}`];
  const file = join(folder, 'Caddyfile');
  writeFileSync(file, `{\n${options.join('\n')}\n}\n${recipe(name)}`);
  const env = {
    PATH: process.env.PATH,
    HOME: folder,
    CLOUD_NAME: CLOUD,
    DATA_NAME: DATA,
    ...nodes,
  };
  return spawn('caddy', ['run', '--adapter', 'caddyfile', '--config', file], { env, stdio: 'ignore' });
}
