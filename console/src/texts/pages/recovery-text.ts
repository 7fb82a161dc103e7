/** The texts of recovery points, loaded with their page. */
import { recoveryPage } from '../en/pages/recovery-page.ts';

export const recoveryText = recoveryPage;
