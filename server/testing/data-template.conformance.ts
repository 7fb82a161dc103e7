/** Servers of several clouds on one host start with the same data, and share nothing else. */
import assert from 'node:assert/strict';
import { mkdtempSync, readdirSync, rmSync, statSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import type { AccountServers } from '../drivers/managed-server/accounts/account-servers.ts';
import { readServerSecret, rolePassword } from '../drivers/managed-server/links/server-secret.ts';
import { keptPort } from '../drivers/server-port.ts';
import { newDatabase } from './new-database.ts';
import type { ServerFixture } from './server-fixture.ts';

/** Our own server, by its socket. */
export interface SocketOf {
  readonly folder: string;
  readonly port: number;
}

export interface TemplateCase {
  /** Name of our administrator in the server. */
  readonly admin: string;
  /** A cloud whose servers are copied from templates in that folder. */
  readonly open: (templates: string) => ServerFixture<AccountServers>;
  /** Logs in; rejects on refusal. */
  readonly logIn: (socket: SocketOf, user: string, password: string) => Promise<unknown>;
  /** Message of a refused log-in. */
  readonly refusal: RegExp;
}

const PASSWORD = 'aaaaaaaaaaaaaaaaaaaaaaaa';

export function testTemplates(name: string, { admin, open, logIn, refusal }: TemplateCase): void {
  test(`the servers of ${name} of two clouds begin with the same data, and share no password`, async (t) => {
    const templates = mkdtempSync(join(tmpdir(), 'cloudlet-templates-'));
    t.after(() => rmSync(templates, { recursive: true }));
    const clouds = [open(templates), open(templates)];
    t.after(() => Promise.all(clouds.map(({ close }) => close())));
    // At the same time: both find no template.
    await Promise.all(clouds.map(({ engine }) => engine.provision(newDatabase(), PASSWORD)));
    const [made = '', ...others] = readdirSync(join(templates, name));
    assert.deepEqual(others, []);
    const template = join(templates, name, made);
    const { mode, uid } = statSync(template);
    assert.deepEqual([mode & 0o777, uid], [0o700, process.getuid?.()]);
    assert.equal(statSync(join(template, 'home/data')).uid, process.getuid?.());
    const secretAt = (at: string) => readServerSecret({ keeper: join(at, 'keeper') });
    const servers = clouds.map(({ folder }) => join(folder, 'accounts/1'));
    const secrets = [template, ...servers].map(secretAt);
    assert.equal(new Set(secrets.map((secret) => secret.toString('hex'))).size, 3);
    for (const server of servers) {
      assert.deepEqual(readdirSync(join(server, 'keeper')).includes('first-secret'), false);
      const socket = { folder: join(server, 'home/run'), port: keptPort(join(server, 'keeper')) ?? 0 };
      for (const secret of secrets) {
        const entry = logIn(socket, admin, rolePassword(secret, admin));
        if (secret.equals(secretAt(server))) await entry;
        else await assert.rejects(entry, refusal);
      }
    }
  });
}
