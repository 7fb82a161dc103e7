/**
 * Debian's Laravel with the `.env` from the API: migrations, models, and databases of parallel tests, which
 * `php artisan test --parallel` creates with the same calls. Debian lacks Laravel's initial application, so
 * the needed parts are here.
 */
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

const PACKAGES = 'php-laravel-framework,php8.2-cli,php8.2-mysql,php8.2-pgsql,php8.2-mbstring,php8.2-xml';
const EXTENSIONS =
  'mysqlnd pdo pdo_mysql pdo_pgsql mbstring tokenizer ctype fileinfo iconv phar posix dom xml';
const PHP = '/usr/bin/php8.2';
const RUN_MS = 300_000;
const ENGINES = { postgresql: ['postgresql', NO_POSTGRESQL], mysql: ['mariadb', NO_MARIADB] } as const;

const CONFIG = (pgsql: string) => `<?php return [
  'default' => env('DB_CONNECTION', 'mysql'),
  'connections' => [
    'mysql' => [
      'driver' => 'mysql', 'url' => env('DATABASE_URL'), 'host' => env('DB_HOST'), 'port' => env('DB_PORT'),
      'database' => env('DB_DATABASE'), 'username' => env('DB_USERNAME'), 'password' => env('DB_PASSWORD'),
      'charset' => 'utf8mb4', 'collation' => 'utf8mb4_unicode_ci', 'prefix' => '', 'strict' => true,
      'options' => array_filter([PDO::MYSQL_ATTR_SSL_CA => env('MYSQL_ATTR_SSL_CA')]),
    ],
    'pgsql' => [
      'driver' => 'pgsql', 'url' => env('DATABASE_URL'), 'host' => env('DB_HOST'), 'port' => env('DB_PORT'),
      'database' => env('DB_DATABASE'), 'username' => env('DB_USERNAME'), 'password' => env('DB_PASSWORD'),
      'charset' => 'utf8', 'prefix' => '', 'schema' => 'public', ${pgsql || "'sslmode' => 'prefer',"}
    ],
  ],
  'migrations' => 'migrations',
];
`;

const FILES = {
  'config/app.php': `<?php return [
  'name' => 'Shop', 'env' => 'local', 'debug' => true, 'timezone' => 'UTC', 'locale' => 'en',
  'key' => 'base64:${Buffer.alloc(32).toString('base64')}', 'cipher' => 'AES-256-CBC',
  'providers' => [
    Illuminate\\Cache\\CacheServiceProvider::class,
    Illuminate\\Foundation\\Providers\\ConsoleSupportServiceProvider::class,
    Illuminate\\Database\\DatabaseServiceProvider::class,
    Illuminate\\Filesystem\\FilesystemServiceProvider::class,
    Illuminate\\Queue\\QueueServiceProvider::class,
  ],
];
`,
  'config/cache.php': `<?php return ['default' => 'array', 'stores' => ['array' => ['driver' => 'array']]];`,
  'config/queue.php': `<?php return ['default' => 'sync', 'connections' => ['sync' => ['driver' => 'sync']]];`,
  'database/migrations/2026_01_01_000000_create_orders.php': `<?php
use Illuminate\\Database\\Migrations\\Migration;
use Illuminate\\Database\\Schema\\Blueprint;
use Illuminate\\Support\\Facades\\Schema;
class CreateOrders extends Migration {
  public function up() {
    Schema::create('orders', function (Blueprint $table) {
      $table->id();
      $table->string('what')->index();
      $table->json('more')->nullable();
      $table->decimal('price', 10, 2)->default(0);
      $table->timestamps();
    });
  }
  public function down() { Schema::dropIfExists('orders'); }
}
`,
  'start.php': `<?php
require '/usr/share/php/Illuminate/autoload.php';
$app = new Illuminate\\Foundation\\Application(__DIR__);
$app->singleton(Illuminate\\Contracts\\Console\\Kernel::class, Illuminate\\Foundation\\Console\\Kernel::class);
$app->singleton(Illuminate\\Contracts\\Debug\\ExceptionHandler::class, Illuminate\\Foundation\\Exceptions\\Handler::class);
return $app;
`,
  artisan: `<?php
$app = require __DIR__ . '/start.php';
$kernel = $app->make(Illuminate\\Contracts\\Console\\Kernel::class);
exit($kernel->handle(new Symfony\\Component\\Console\\Input\\ArgvInput, new Symfony\\Component\\Console\\Output\\ConsoleOutput));
`,
  'use.php': `<?php
$app = require __DIR__ . '/start.php';
$app->make(Illuminate\\Contracts\\Console\\Kernel::class)->bootstrap();
use Illuminate\\Support\\Facades\\{Artisan, DB, Schema};
class Order extends Illuminate\\Database\\Eloquent\\Model {
  protected $guarded = [];
  protected $casts = ['more' => 'array'];
}
Order::create(['what' => 'kept', 'more' => ['sugar' => 2], 'price' => '1.50']);
try {
  DB::transaction(function () { Order::create(['what' => 'undone']); throw new Exception('undo'); });
} catch (Exception $e) {}
$found = ['sugar' => Order::where('more->sugar', 2)->first()->more['sugar'], 'count' => Order::count()];
$connection = DB::getDefaultConnection();
$own = config("database.connections.$connection.database");
$found['tls'] = $connection === 'pgsql'
  ? DB::selectOne('SELECT ssl FROM pg_stat_ssl WHERE pid = pg_backend_pid()')->ssl
  : DB::selectOne("SHOW SESSION STATUS LIKE 'Ssl_version'")->Value !== '';
// Like Illuminate\\Testing\\Concerns\\TestDatabases for each process.
foreach (['1', '2'] as $token) {
  $name = $own . '_test_' . $token;
  Schema::dropDatabaseIfExists($name);
  Schema::createDatabase($name);
  DB::purge();
  config(["database.connections.$connection.database" => $name]);
  Artisan::call('migrate:fresh', ['--force' => true]);
  Order::create(['what' => 'tea']);
  $found['tests'][] = [DB::connection()->getDatabaseName() === $name, Order::count()];
  DB::purge();
  config(["database.connections.$connection.database" => $own]);
}
$found['own'] = Order::pluck('what')->all();
echo json_encode($found);
`,
  'ask.php': `<?php
$app = require __DIR__ . '/start.php';
$app->make(Illuminate\\Contracts\\Console\\Kernel::class)->bootstrap();
try { Illuminate\\Support\\Facades\\DB::select('SELECT 1'); } catch (Exception $e) { echo $e->getMessage(); }
`,
  'drop.php': `<?php
$app = require __DIR__ . '/start.php';
$app->make(Illuminate\\Contracts\\Console\\Kernel::class)->bootstrap();
use Illuminate\\Support\\Facades\\{DB, Schema};
foreach (['1', '2'] as $token) Schema::dropDatabaseIfExists(DB::connection()->getDatabaseName() . '_test_' . $token);
`,
};

describe('Laravel', { skip: cannotMakeTree() }, () => {
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

  async function php(at: string, ...words: readonly string[]): Promise<string> {
    const extensions = EXTENSIONS.split(' ').flatMap((name) => ['-d', `extension=${name}`]);
    const script = `chdir('/${at}'); $argv = $_SERVER['argv'] = ${phpList(words)}; require '/${at}/${words[0]}';`;
    const child = spawn('/usr/sbin/chroot', [tree, PHP, ...extensions, '-r', script], {
      env: { PATH: '/usr/bin:/bin', HOME: '/tmp' },
      timeout: RUN_MS,
    });
    const said = Promise.all([text(child.stdout), text(child.stderr)]);
    const [code] = await once(child, 'close');
    const [out, err] = await said;
    assert.equal(code, 0, `${out}\n${err}`);
    return out;
  }

  for (const [engine, [program, why]] of Object.entries(ENGINES)) {
    const skip = globSync(`build/programs/${program}-*/usr`).length > 0 ? false : why;
    for (const tls of [false, true])
      test(`${engine}${tls ? ' with TLS' : ''}: migrations, models and databases for tests`, {
        skip,
      }, async () => {
        const name = `${engine}${tls ? '-tls' : ''}`;
        const { body: made } = await user.call('/api/databases', { json: { name, engine } });
        const path = `/api/databases/${made.database_id}`;
        const { body } = await user.call(`${path}/credentials?tls=${tls}`);
        const shown = body.frameworks.find((one: { framework: string }) => one.framework === 'Laravel');
        // The line about that file.
        const [, pgsql = ''] = /^# config\/database\.php, pgsql: (.*)$/m.exec(shown.code) ?? [];
        const files: Record<string, string> = { ...FILES, [shown.file]: shown.code };
        files['config/database.php'] = CONFIG(pgsql);
        if (tls) files['ca.pem'] = body.ca;
        for (const [file, content] of Object.entries(files)) {
          const at = join(tree, name, file);
          mkdirSync(dirname(at), { recursive: true });
          writeFileSync(at, content);
        }
        for (const folder of ['bootstrap/cache', 'storage/framework/cache', 'storage/logs'])
          mkdirSync(join(tree, name, folder), { recursive: true });
        assert.match(await php(name, 'artisan', 'migrate', '--force'), /Migrated/);
        assert.deepEqual(JSON.parse(await php(name, 'use.php')), {
          sugar: 2,
          count: 1,
          // libpq requests it by default.
          tls: tls || engine === 'postgresql',
          tests: [
            [true, 1],
            [true, 1],
          ],
          own: ['kept'],
        });
        const { database } = made.connection;
        const tests = async () => {
          const { body } = await user.call(`${path}/test-databases`);
          const names = body.map((one: { name: string }) => one.name);
          return names.filter((name: string) => name.startsWith(database));
        };
        assert.deepEqual(await tests(), [`${database}_test_1`, `${database}_test_2`]);
        await php(name, 'drop.php');
        assert.deepEqual(await tests(), []);
        await php(name, 'artisan', 'migrate:rollback', '--force');
        if (!tls) return;
        // A server with another authority is refused.
        writeFileSync(join(tree, name, 'ca.pem'), String(rootCertificates[0]));
        assert.match(await php(name, 'ask.php'), /certificate verify failed|SSL/);
      });
  }
});

const phpList = (words: readonly string[]) => `[${words.map((word) => `'${word}'`).join(', ')}]`;
