/** The texts of webhooks, loaded with their page. */
import { webhooksPage } from '../en/pages/webhooks-page.ts';

export const webhooksText = webhooksPage;
