/** Names of MySQL in web frameworks. */
import type { FrameworkNames } from '../shared/framework-files.ts';

export const FRAMEWORKS: FrameworkNames = {
  django: {
    engine: 'mysql',
    packages: 'mysqlclient',
    options: (ca) => `{'charset': 'utf8mb4', 'ssl': {'ca': ${ca}}}`,
  },
  rails: {
    gem: 'mysql2',
    adapter: 'mysql2',
    encoding: 'utf8mb4',
    options: (ca) => [`sslca: ${ca}`, 'sslverify: true'],
  },
  laravel: {
    connection: 'mysql',
    options: (ca) => `# Use the absolute path if the site is not served from this folder.
MYSQL_ATTR_SSL_CA=${ca}
`,
  },
  prisma: { provider: 'mysql' },
};
