/** Mounts the console in the page. */
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

// The cloud is unreachable, or has a newer build. The reader decides when to reload: forms and
// uploads would be lost, and the router reloads automatically on browsers' own messages.
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
 * The page's policy allows only styles with its nonce. Libraries create `<style>` elements at run
 * time, mostly without a setting for it, so each such element gets the nonce here.
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
