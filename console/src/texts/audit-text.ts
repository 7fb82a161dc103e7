/** The texts of the audit log, loaded with its pages. */
import { audit } from './en/audit.ts';

export const auditText = audit;
