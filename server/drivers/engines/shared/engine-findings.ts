/** Lines of `cloudlet doctor` that several engines have. */
import type { Finding } from '../../../platform/finding.ts';
import type { NoPrograms } from '../../managed-server/programs/unpacked-programs.ts';
import type { ExternalFacts } from '../../managed-server/sql-server.ts';

/** Programs of the engine are missing. */
export function notFound(subject: string, { reason, fix }: NoPrograms): Finding {
  const detail = `not found: databases of this engine are unavailable: ${reason}`;
  return { level: 'warn', subject, detail, fix };
}

/** Finding about the operator's own server. */
export function ofExternal(subject: string, asked: Promise<ExternalFacts>): Promise<Finding> {
  return asked.then(
    ({ version, limits }) => ({
      level: 'ok',
      subject,
      detail: `${version}, your own server: ${limits.join('; ')}`,
    }),
    (error) => ({ level: 'warn', subject, detail: error.message, fix: error.hint }),
  );
}
