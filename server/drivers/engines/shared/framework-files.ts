/** Configuration of web frameworks for an SQL database: text and file. */
import { CA_FILE, type FrameworkSnippet, type SnippetTarget } from '../../../databases/engine-description.ts';

type Parts = Readonly<Record<'user' | 'password' | 'host' | 'port' | 'name', string>>;

/** Names of the engine in each framework, and how TLS is requested. `ca`: path of the file to trust. */
export interface FrameworkNames {
  readonly django: {
    readonly engine: string;
    /** Packages for pip. */
    readonly packages: string;
    options(ca: string): string;
  };
  readonly rails: {
    readonly gem: string;
    readonly adapter: string;
    readonly encoding: string;
    /** Two lines of database.yml. */
    options(ca: string): readonly [string, string];
  };
  /** `path`: as a PHP expression, relative to the site. */
  readonly laravel: { readonly connection: string; options(ca: string, path: string): string };
  readonly prisma: { readonly provider: string };
}

export function sqlFrameworks(names: FrameworkNames, target: SnippetTarget): FrameworkSnippet[] {
  const { username: user, password, hostname: host, port, pathname } = new URL(target.uri);
  const parts = { user, password, host, port, name: pathname.slice(1) };
  return [
    django(names.django, target, parts),
    rails(names.rails, target, parts),
    laravel(names.laravel, target, parts),
    prisma(names.prisma, target),
  ];
}

function caOf({ hasCa }: SnippetTarget): string {
  return hasCa ? CA_FILE : '/etc/ssl/certs/ca-certificates.crt';
}

/** `manage.py test` makes the database `test_<name>`, and drops it. */
function django(
  { engine, packages, options }: FrameworkNames['django'],
  target: SnippetTarget,
  of: Parts,
): FrameworkSnippet {
  return {
    framework: 'Django',
    file: 'settings.py',
    code: `# pip install ${packages}
DATABASES = {
    'default': {
        'ENGINE': 'django.db.backends.${engine}',
        'NAME': '${of.name}',
        'USER': '${of.user}',
        'PASSWORD': '${of.password}',
        'HOST': '${of.host}',
        'PORT': '${of.port}',${target.tls ? `\n        'OPTIONS': ${options(`'${caOf(target)}'`)},` : ''}
    }
}
`,
  };
}

/** Without `url`: Rails prefers it to the other fields, so its tests would empty the database itself. */
function rails(
  { gem, adapter, encoding, options }: FrameworkNames['rails'],
  target: SnippetTarget,
  of: Parts,
): FrameworkSnippet {
  const [file, verify] = options(caOf(target));
  return {
    framework: 'Rails',
    file: 'config/database.yml',
    code: `# gem install ${gem}
default: &default
  adapter: ${adapter}
  encoding: ${encoding}
  host: ${of.host}
  port: ${of.port}
  username: ${of.user}
  password: "${of.password}"
  database: ${of.name}${target.tls ? `\n  ${file}\n  ${verify}` : ''}
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
function laravel(
  { connection, options }: FrameworkNames['laravel'],
  target: SnippetTarget,
  of: Parts,
): FrameworkSnippet {
  const ca = caOf(target);
  const path = target.hasCa ? "base_path('ca.pem')" : `'${ca}'`;
  return {
    framework: 'Laravel',
    file: '.env',
    code: `DB_CONNECTION=${connection}
DB_HOST=${of.host}
DB_PORT=${of.port}
DB_DATABASE=${of.name}
DB_USERNAME=${of.user}
DB_PASSWORD=${of.password}
${target.tls ? options(ca, path) : ''}`,
  };
}

/** `migrate dev` makes a shadow database beside it. */
function prisma(
  { provider }: FrameworkNames['prisma'],
  { uri, tls, hasCa }: SnippetTarget,
): FrameworkSnippet {
  const [bare = uri] = uri.split('?');
  const verified = `?sslaccept=strict${hasCa ? `&sslcert=${CA_FILE}` : ''}`;
  return {
    framework: 'Prisma',
    file: '.env',
    code: `# prisma/schema.prisma: datasource db { provider = "${provider}", url = env("DATABASE_URL") }
${tls && hasCa ? '# Prisma looks for ca.pem beside schema.prisma.\n' : ''}DATABASE_URL="${tls ? `${bare}${verified}` : uri}"
`,
  };
}
