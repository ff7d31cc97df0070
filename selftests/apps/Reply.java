// SPDX-License-Identifier: GPL-2.0

import java.io.IOException;
import java.util.Arrays;

import jakarta.servlet.ServletOutputStream;
import jakarta.servlet.http.HttpServlet;
import jakarta.servlet.http.HttpServletRequest;
import jakarta.servlet.http.HttpServletResponse;

/**
 * A servlet that writes 3096 bytes and flushes, as the one of the public report does: without a
 * Content-Length the reply is chunked, and its end ("0", 5 bytes) is a write of its own.
 */
public final class Reply extends HttpServlet {
	private static final long serialVersionUID = 1;
	private static final byte[] CONTENT = new byte[3096];

	static {
		Arrays.fill(CONTENT, (byte) 'x');
	}

	@Override
	protected void doGet(HttpServletRequest request, HttpServletResponse response) throws IOException {
		response.setContentType("application/octet-stream");
		ServletOutputStream out = response.getOutputStream();
		out.write(CONTENT);
		out.flush();
	}
}
