/** Names of PostgreSQL in web frameworks. */
import type { FrameworkNames } from '../shared/framework-files.ts';

export const FRAMEWORKS: FrameworkNames = {
  django: {
    engine: 'postgresql',
    packages: '"psycopg[binary]"',
    options: (ca) => `{'sslmode': 'verify-full', 'sslrootcert': ${ca}}`,
  },
  rails: {
    gem: 'pg',
    adapter: 'postgresql',
    encoding: 'unicode',
    options: (ca) => [`sslrootcert: ${ca}`, 'sslmode: verify-full'],
  },
  laravel: {
    connection: 'pgsql',
    options: (_, path) => `DB_SSLMODE=verify-full
# config/database.php, pgsql: 'sslmode' => env('DB_SSLMODE', 'prefer'), 'sslrootcert' => ${path},
`,
  },
  prisma: { provider: 'postgresql' },
};
