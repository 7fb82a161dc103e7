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
    rails(engine, target),
    laravel(engine, target, parts),
    prisma(engine, target),
  ];
}

/** `manage.py test` makes the database `test_<name>`, and drops it. */
function django(engine: 'postgresql' | 'mysql', { tls, hasCa }: Target, of: Parts): FrameworkSnippet {
  const ca = hasCa ? `'${CA_FILE}'` : "'/etc/ssl/certs/ca-certificates.crt'";
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

function rails(engine: 'postgresql' | 'mysql', { uri, tls, hasCa }: Target): FrameworkSnippet {
  const url = engine === 'mysql' ? uri.replace(/^mysql:/, 'mysql2:') : uri;
  const ca = hasCa ? `\n  sslca: ${CA_FILE}` : '';
  const options = tls && engine === 'mysql' ? `${ca}\n  ssl_mode: verify_identity` : '';
  return {
    framework: 'Rails',
    file: 'config/database.yml',
    code: `# gem install ${engine === 'mysql' ? 'mysql2' : 'pg'}
default: &default
  url: ${url}${options}
development:
  <<: *default
production:
  <<: *default
test:
  <<: *default
  database: test_shop
`,
  };
}

function laravel(engine: 'postgresql' | 'mysql', { tls, hasCa }: Target, of: Parts): FrameworkSnippet {
  const ca = hasCa ? CA_FILE : '/etc/ssl/certs/ca-certificates.crt';
  const options = engine === 'postgresql' ? 'DB_SSLMODE=verify-full' : `MYSQL_ATTR_SSL_CA=${ca}`;
  return {
    framework: 'Laravel',
    file: '.env',
    code: `DB_CONNECTION=${engine === 'postgresql' ? 'pgsql' : 'mysql'}
DB_HOST=${of.host}
DB_PORT=${of.port}
DB_DATABASE=${of.name}
DB_USERNAME=${of.user}
DB_PASSWORD=${of.password}
${tls ? `${options}\n` : ''}`,
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
DATABASE_URL="${tls ? `${bare}${verified}` : uri}"
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
