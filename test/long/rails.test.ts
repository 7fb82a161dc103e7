/** Debian's Rails with the `config/database.yml` from the API: migrations, and tests. */
import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { globSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { text } from 'node:stream/consumers';
import { after, before, describe, test } from 'node:test';
import { rootCertificates } from 'node:tls';
import { NO_MARIADB, NO_POSTGRESQL } from '../../scripts/installed.ts';
import { Client } from '../harness/client.ts';
import { CloudProcess } from '../harness/cloud-process.ts';
import { cannotMakeTree, unpackTree } from './debian-tree.ts';

const PACKAGES = 'ruby-railties,ruby-activerecord,ruby-pg,ruby-mysql2,ruby-minitest';
const RUBY = '/usr/bin/ruby3.1';
const RUN_MS = 300_000;
const ENGINES = { postgresql: ['postgresql', NO_POSTGRESQL], mysql: ['mariadb', NO_MARIADB] } as const;

const FILES = {
  'bin/rails': `require 'pathname'
APP_PATH = File.expand_path('../config/application', __dir__)
require 'rails/commands'
`,
  Rakefile: `require_relative 'config/application'
Rails.application.load_tasks
`,
  'config/application.rb': `require 'rails'
require 'active_record/railtie'
require 'rails/test_unit/railtie'
module Shop
  class Application < Rails::Application
    config.load_defaults 6.1
    config.eager_load = false
    config.secret_key_base = 'x' * 64
    config.active_support.deprecation = :silence
  end
end
`,
  'config/environment.rb': `require_relative 'application'
Rails.application.initialize!
`,
  'app/models/order.rb': `class Order < ActiveRecord::Base
  # MariaDB has texts where MySQL has JSON.
  attribute :more, :json
  validates :what, presence: true
end
`,
  'db/migrate/20260101000000_create_orders.rb': `class CreateOrders < ActiveRecord::Migration[6.1]
  def change
    create_table :orders do |t|
      t.string :what, null: false, index: true
      t.json :more
      t.decimal :price, precision: 10, scale: 2
      t.timestamps
    end
  end
end
`,
  'test/test_helper.rb': `ENV['RAILS_ENV'] = 'test'
require_relative '../config/environment'
require 'rails/test_help'
class ActiveSupport::TestCase
  parallelize(workers: 2)
end
`,
  'test/models/order_test.rb': `require 'test_helper'
class OrderTest < ActiveSupport::TestCase
  5.times do |n|
    test "orders #{n}" do
      assert_match(/^test_d_/, ActiveRecord::Base.connection.current_database)
      assert_equal 0, Order.count
      Order.create!(what: 'tea', more: { sugar: n }, price: '1.50')
      assert_equal n, Order.find_by(what: 'tea').more['sugar']
    end
  end
end
`,
};

describe('Rails', { skip: cannotMakeTree() }, () => {
  const tree = mkdtempSync(join(tmpdir(), 'cloudlet-test-'));
  let cloud: CloudProcess;
  let user: Client;
  before(async () => {
    unpackTree(tree, PACKAGES);
    cloud = await CloudProcess.start();
    user = await new Client(cloud.api).newUser();
  });
  after(async () => {
    await cloud?.stop();
    rmSync(tree, { recursive: true, force: true });
  });

  for (const [engine, [program, why]] of Object.entries(ENGINES)) {
    const skip = globSync(`build/programs/${program}-*/usr`).length > 0 ? false : why;
    for (const tls of [false, true])
      test(`${engine}${tls ? ' with TLS' : ''}: migrations and tests`, { skip }, async () => {
        const name = `${engine}${tls ? '-tls' : ''}`;
        const { body: made } = await user.call('/api/databases', { json: { name, engine } });
        const path = `/api/databases/${made.database_id}`;
        const { body } = await user.call(`${path}/credentials?tls=${tls}`);
        const shown = body.frameworks.find((one: { framework: string }) => one.framework === 'Rails');
        const files: Record<string, string> = { ...FILES, [shown.file]: shown.code };
        if (tls) files['ca.pem'] = body.ca;
        for (const [file, content] of Object.entries(files)) {
          const at = join(tree, name, file);
          mkdirSync(dirname(at), { recursive: true });
          writeFileSync(at, content);
        }
        const rails = async (environment: string, ...words: readonly string[]) => {
          const script = `Dir.chdir '/${name}'; ARGV.replace ${JSON.stringify(words)}; load 'bin/rails'`;
          const env = { PATH: '/usr/bin:/bin', LANG: 'C.UTF-8', HOME: '/tmp', RAILS_ENV: environment };
          const child = spawn('/usr/sbin/chroot', [tree, RUBY, '-e', script], { env, timeout: RUN_MS });
          const said = Promise.all([text(child.stdout), text(child.stderr)]);
          const [code] = await once(child, 'close');
          const whole = (await said).join('\n');
          assert.equal(code, 0, whole);
          return whole;
        };
        await rails('development', 'db:migrate');
        await rails('development', 'runner', "Order.create!(what: 'kept', more: { a: 1 })");
        const tests = async () => {
          const { body } = await user.call(`${path}/test-databases`);
          const names = body.map((one: { name: string }) => one.name);
          return names.filter((name: string) => name.startsWith(`test_${made.connection.database}`)).sort();
        };
        await rails('test', 'db:create');
        await rails('test', 'db:test:prepare');
        assert.deepEqual(await tests(), [`test_${made.connection.database}`]);
        assert.match(await rails('test', 'test'), /5 runs, 20 assertions, 0 failures, 0 errors/);
        // The rows of the database itself are unchanged.
        const kept = await user.call(`${path}/query`, { json: { statement: 'SELECT what FROM orders' } });
        assert.deepEqual(kept.body.rows, [['kept']]);
        await rails('test', 'db:drop');
        // Rails keeps those of its processes.
        const { database } = made.connection;
        assert.deepEqual(await tests(), [`test_${database}-0`, `test_${database}-1`]);
        await rails('development', 'db:rollback');
        if (!tls) return;
        // A server with another authority is refused.
        writeFileSync(join(tree, name, 'ca.pem'), String(rootCertificates[0]));
        await assert.rejects(rails('development', 'db:migrate'), /certificate|SSL/i);
      });
  }
});
