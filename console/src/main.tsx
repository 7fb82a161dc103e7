/** Puts the console into the page. */
import { MantineProvider } from '@mantine/core';
import { Notifications } from '@mantine/notifications';
import '@fontsource-variable/inter';
import '@mantine/core/styles.css';
import '@mantine/notifications/styles.css';
import '@mantine/spotlight/styles.css';
import { QueryClientProvider } from '@tanstack/react-query';
import { RouterProvider } from '@tanstack/react-router';
import { StrictMode } from 'react';
import { createRoot } from 'react-dom/client';
import './base.css';
import { queryClient } from './queries.ts';
import { router } from './router.tsx';
import { text } from './texts/text.ts';
import { theme } from './theme.ts';

document.documentElement.lang = text.locale;
const nonce = giveStylesTheNonce();

// The cloud is out of reach, or another build has replaced this one. To reload is for the reader to decide:
// forms and uploads would be lost, and the router reloads by itself on the browser's own words.
window.addEventListener('vite:preloadError', ({ payload }) => {
  payload.message = text.shell.partMissing;
});

createRoot(document.getElementById('root') as HTMLElement).render(
  <StrictMode>
    <MantineProvider theme={theme} defaultColorScheme="auto" getStyleNonce={() => nonce}>
      <QueryClientProvider client={queryClient}>
        <RouterProvider router={router} />
        <Notifications position="bottom-center" limit={4} />
      </QueryClientProvider>
    </MantineProvider>
  </StrictMode>,
);

/**
 * The policy of the page lets in only styles that carry its nonce. Libraries make `<style>` elements while
 * they run, and most have no setting for it: each such element is given it here.
 */
function giveStylesTheNonce(): string {
  const nonce = document.querySelector<HTMLMetaElement>('meta[property=csp-nonce]')?.nonce ?? '';
  const createElement = document.createElement.bind(document);
  document.createElement = (name: string, options?: ElementCreationOptions) => {
    const element = createElement(name, options);
    if (element instanceof HTMLStyleElement) element.nonce = nonce;
    return element;
  };
  return nonce;
}
