/** How web frameworks are told of a database: what goes into which of their files. */
import type { EngineName } from './engine.ts';
import type { FrameworkSnippet } from './schema.ts';
import { CA_FILE, type Target } from './snippets.ts';

type Parts = Readonly<Record<'user' | 'password' | 'host' | 'port' | 'name', string>>;

/** Empty for an engine that none of them knows. */
export function frameworksFor(engine: EngineName, target: Target): FrameworkSnippet[] {
  if (engine === 'mongodb') return [mongoose(target)];
  if (engine === 'sqlite') return [];
  const { username: user, password, hostname: host, port, pathname } = new URL(target.uri);
  const parts = { user, password, host, port, name: pathname.slice(1) };
  return [
    django(engine, target, parts),
    rails(engine, target, parts),
    laravel(engine, target, parts),
    prisma(engine, target),
  ];
}

function caOf({ hasCa }: Target): string {
  return hasCa ? CA_FILE : '/etc/ssl/certs/ca-certificates.crt';
}

/** `manage.py test` makes the database `test_<name>`, and drops it. */
function django(engine: 'postgresql' | 'mysql', target: Target, of: Parts): FrameworkSnippet {
  const { tls } = target;
  const ca = `'${caOf(target)}'`;
  const options =
    engine === 'postgresql'
      ? `{'sslmode': 'verify-full', 'sslrootcert': ${ca}}`
      : `{'charset': 'utf8mb4', 'ssl': {'ca': ${ca}}}`;
  return {
    framework: 'Django',
    file: 'settings.py',
    code: `# pip install ${engine === 'postgresql' ? '"psycopg[binary]"' : 'mysqlclient'}
DATABASES = {
    'default': {
        'ENGINE': 'django.db.backends.${engine}',
        'NAME': '${of.name}',
        'USER': '${of.user}',
        'PASSWORD': '${of.password}',
        'HOST': '${of.host}',
        'PORT': '${of.port}',${tls ? `\n        'OPTIONS': ${options},` : ''}
    }
}
`,
  };
}

/**
 * Without `url`: Rails prefers what that says to what stands beside it, so its tests would empty the database
 * itself.
 */
function rails(engine: 'postgresql' | 'mysql', target: Target, of: Parts): FrameworkSnippet {
  const [gem, encoding] = engine === 'mysql' ? ['mysql2', 'utf8mb4'] : ['pg', 'unicode'];
  const ca = caOf(target);
  const options = engine === 'mysql' ? ['sslca', 'sslverify: true'] : ['sslrootcert', 'sslmode: verify-full'];
  const [file, verify] = options;
  return {
    framework: 'Rails',
    file: 'config/database.yml',
    code: `# gem install ${gem}
default: &default
  adapter: ${engine === 'mysql' ? 'mysql2' : 'postgresql'}
  encoding: ${encoding}
  host: ${of.host}
  port: ${of.port}
  username: ${of.user}
  password: "${of.password}"
  database: ${of.name}${target.tls ? `\n  ${file}: ${ca}\n  ${verify}` : ''}
development:
  <<: *default
production:
  <<: *default
test:
  <<: *default
  database: test_${of.name}
`,
  };
}

/** Without `DB_URL`, for the same reason. */
function laravel(engine: 'postgresql' | 'mysql', target: Target, of: Parts): FrameworkSnippet {
  const ca = caOf(target);
  const path = target.hasCa ? "base_path('ca.pem')" : `'${ca}'`;
  const options =
    engine === 'postgresql'
      ? `DB_SSLMODE=verify-full
# config/database.php, pgsql: 'sslmode' => env('DB_SSLMODE', 'prefer'), 'sslrootcert' => ${path},
`
      : `# With its whole path where the site is not served from this folder.
MYSQL_ATTR_SSL_CA=${ca}
`;
  return {
    framework: 'Laravel',
    file: '.env',
    code: `DB_CONNECTION=${engine === 'postgresql' ? 'pgsql' : 'mysql'}
DB_HOST=${of.host}
DB_PORT=${of.port}
DB_DATABASE=${of.name}
DB_USERNAME=${of.user}
DB_PASSWORD=${of.password}
${target.tls ? options : ''}`,
  };
}

/** `migrate dev` makes a shadow database beside it. */
function prisma(engine: 'postgresql' | 'mysql', { uri, tls, hasCa }: Target): FrameworkSnippet {
  const [bare = uri] = uri.split('?');
  const verified = `?sslaccept=strict${hasCa ? `&sslcert=${CA_FILE}` : ''}`;
  return {
    framework: 'Prisma',
    file: '.env',
    code: `# prisma/schema.prisma: datasource db { provider = "${engine}", url = env("DATABASE_URL") }
${tls && hasCa ? '# ca.pem is looked for beside schema.prisma.\n' : ''}DATABASE_URL="${tls ? `${bare}${verified}` : uri}"
`,
  };
}

function mongoose({ uri }: Target): FrameworkSnippet {
  return {
    framework: 'mongoose',
    file: 'db.mjs',
    code: `// npm install mongoose
import mongoose from 'mongoose';
await mongoose.connect('${uri}');
const Order = mongoose.model('Order', new mongoose.Schema({ what: String }));
await Order.create({ what: 'tea' });
console.log(await Order.countDocuments({ what: 'tea' }));
await mongoose.disconnect();
`,
  };
}
