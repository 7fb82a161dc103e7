/** Django's own `manage.py migrate` and `manage.py test`, with the settings from the API. */
import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { globSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { after, before, describe, test } from 'node:test';
import { NO_MARIADB, NO_POSTGRESQL, notInstalled } from '../../scripts/installed.ts';
import { Client } from '../harness/client.ts';
import { CloudProcess } from '../harness/cloud-process.ts';

/** The Python that has Debian's packages. */
const PYTHON = '/usr/bin/python3';
const RUN_MS = 300_000;
const ENGINES = { postgresql: ['postgresql', NO_POSTGRESQL], mysql: ['mariadb', NO_MARIADB] } as const;

const FILES = {
  'manage.py': `import os, sys
os.environ['DJANGO_SETTINGS_MODULE'] = 'settings'
from django.core.management import execute_from_command_line
execute_from_command_line(sys.argv)
`,
  'shop/__init__.py': '',
  'shop/models.py': `from django.db import models

class Order(models.Model):
    what = models.CharField(max_length=50)
    made_at = models.DateTimeField(auto_now_add=True)
    more = models.JSONField(default=dict)
`,
  'shop/tests.py': `from django.contrib.auth.models import User
from django.db import connection
from django.test import TestCase, TransactionTestCase
from shop.models import Order

class OrderTest(TestCase):
    def test_orders(self):
        self.assertTrue(connection.settings_dict['NAME'].startswith('test_d_'))
        Order.objects.create(what='tea', more={'sugar': 2})
        self.assertEqual(Order.objects.get(more__sugar=2).what, 'tea')
        User.objects.create_user('ada', password='secret')

class FlushTest(TransactionTestCase):
    def test_flush(self):
        Order.objects.bulk_create(Order(what=str(n)) for n in range(500))
        self.assertEqual(Order.objects.count(), 500)
`,
};

function settings(databases: string): string {
  return `SECRET_KEY = 'x'
USE_TZ = True
DEFAULT_AUTO_FIELD = 'django.db.models.BigAutoField'
INSTALLED_APPS = ['django.contrib.auth', 'django.contrib.contenttypes', 'shop']
${databases}`;
}

describe('Django', { skip: notInstalled('django-admin') }, () => {
  let cloud: CloudProcess;
  let user: Client;
  const folder = mkdtempSync(join(tmpdir(), 'cloudlet-test-'));
  before(async () => {
    cloud = await CloudProcess.start();
    user = await new Client(cloud.api).newUser();
  });
  after(async () => {
    await cloud?.stop();
    rmSync(folder, { recursive: true, force: true });
  });

  async function manage(at: string, ...words: readonly string[]): Promise<string> {
    const env = { PATH: process.env.PATH, PYTHONDONTWRITEBYTECODE: '1' };
    const child = spawn(PYTHON, ['manage.py', ...words], { cwd: at, env, timeout: RUN_MS });
    const said = Promise.all([text(child.stdout), text(child.stderr)]);
    const [code] = await once(child, 'close');
    const whole = (await said).join('\n');
    assert.equal(code, 0, whole);
    return whole;
  }

  for (const [engine, [program, why]] of Object.entries(ENGINES)) {
    const skip = globSync(`build/programs/${program}-*/usr`).length > 0 ? false : why;
    for (const tls of [false, true])
      test(`${engine}${tls ? ' with TLS' : ''}: migrations and tests`, { skip }, async () => {
        const json = { name: `${engine}${tls ? '-tls' : ''}`, engine };
        const { body: made } = await user.call('/api/databases', { json });
        const path = `/api/databases/${made.database_id}`;
        const { body } = await user.call(`${path}/credentials?tls=${tls}`);
        const at = join(folder, json.name);
        mkdirSync(join(at, 'shop'), { recursive: true });
        for (const [name, content] of Object.entries(FILES)) writeFileSync(join(at, name), content);
        const shown = body.frameworks.find((one: { framework: string }) => one.framework === 'Django');
        writeFileSync(join(at, shown.file), settings(shown.code));
        if (tls) writeFileSync(join(at, 'ca.pem'), body.ca);
        await manage(at, 'makemigrations', 'shop');
        await manage(at, 'migrate');
        assert.match(await manage(at, 'test', '--keepdb'), /Ran 2 tests[\s\S]*OK/);
        const name = `test_${made.connection.database}`;
        const tests = async () => (await user.call(`${path}/test-databases`)).body;
        const [kept] = (await tests()).filter((one: { name: string }) => one.name === name);
        assert.ok(kept.size_bytes > 100_000, JSON.stringify(kept));
        // In parallel, the default of its newer versions: a copy for each process.
        assert.match(
          await manage(at, 'test', '--noinput', ...(engine === 'postgresql' ? ['--parallel', '2'] : [])),
          /Ran 2 tests[\s\S]*OK/,
        );
        assert.deepEqual(
          (await tests()).filter((one: { name: string }) => one.name.startsWith(name)),
          [],
        );
      });
  }
});
