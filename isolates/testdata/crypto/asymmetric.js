// crypto.subtle with public keys: vectors of the RFCs, and of OpenSSL where those have none.

const { subtle } = crypto;
const hex = (b) => [...new Uint8Array(b)].map((x) => x.toString(16).padStart(2, "0")).join("");
const un = (text) => new Uint8Array((text.match(/../g) ?? []).map((x) => parseInt(x, 16)));
const text = (s) => new TextEncoder().encode(s);
const b64 = (s) => Uint8Array.from(atob(s.replace(/-/g, "+").replace(/_/g, "/")), (c) => c.charCodeAt(0));
const flip = (bytes, at = 0) => { const out = new Uint8Array(bytes); out[at] ^= 1; return out; };
const hashes = ["SHA-1", "SHA-256", "SHA-384", "SHA-512"];
const message = text("the message");

// Made by OpenSSL for these tests and used nowhere else.
const fixture = {
  rsa: {
    pkcs8: "MIIEvgIBADANBgkqhkiG9w0BAQEFAASCBKgwggSkAgEAAoIBAQCICacA7w5+5OUDprxbWUexAV78Dw/u6IXfUCEjs1AlyV6kdofgt4AcgJ8U3cZ4mgfc871mEKV3fY6DujwYW76sK2EgpxTGWXSTw10gjCgf3XMsU7zFHkjqu7xIcBFGje14prLWYMLrVNZRafMkQX35XxEygU7o5iQoldfE2RCpu6GJCKp6tfvmob7BRjI0EZT5MsTdTaO5Dwg1fupU72ZAw+Kn3gowWBDvqrXuBR4F2OAHenDEWC811iItXYwURJZebD+VBLlEutRzHvRVCodRu1bnB9pVQJwaGOGxhmOYAzT3ZTqAowSxA0QXmoU4Qao36uysFJ30S6Pnm5mBi5/RAgMBAAECggEACpo/UbjQDJQixJlAW+7w7KWair2nycCF/TooYw5s2Y0WGxkBN8Ka3F3VSDyNZUU9W1CvOx8NWRXy6hG1Rla8MnytCheg7GFOJIgY9YTxnvjVAFLvHFPjGKcUzSEtj4NXS0x+wBZJitWRYJtdL78KUPRtCYkqJnJtcLEBC0lkXZNyMa+BGYNMWRAoV5GE312kksAhnUFG6b493GYyCr8dSWJQf9Snr8nsg0c33v4owd7a9BYbsGncKly1Jc1JpRyvBBLdy21tjhw/iuYB+pPwwufBVXGnfGy4Meh8VskUX4ylfQVtzFcVSQGMm79lYtAbaXY1N+CAXSwJZCZC1abJmQKBgQC/f1KcRMKlzoua95rP5cqc6sC+IEUlTHm1SMqb21uVst0t3H1Ns+no1NjzBegN9pDcoWg5UDCaQiXbnuDlbrroHE5UnYh0Kk1aYvH4T0Yzsjw5nPYMkInbdnR8DuKiostCUbw03NU4rP6VSEMdiTjGai4a6na9f/Rnh4VOKlP4rQKBgQC13BWgbq6fJCo3nYE6e8r+fEEkVMHq8Hjo1yq/0FWF+APUzg9TRa2ROC12pfRtvTjrZydrfjN25xkspQCCNOuhzrcWoXyST04HG5EjDXseer3gaOKR7jxQW5H5ZduNq9W4itV+vTqEA+BQ0l10UenuF2GvepyrkfMNjgWfRP40NQKBgEbO5JQF1NeMdRCbJ7Jh7LZzE0v6ELdG/OXsgYZ56PaEicZQdkDKGt7N/V53O6QWHOCICkrO/Pm9JdR8ffo4JIJ5HPmqum8ByVJ3rbM8VN/+ssg24sAoneD5fv70Xhb3DSN7p5UAZxMq3IQEkVSVjdnIHz4yni9Z5dx2PvN1MVGNAoGBAJtU3WAHyb0CHdEdBekXHX6aUOWgQ3XRaeSvC8OERdhEy7jzPCHLLQIRsrtZ6lnlOn3OwNvOklSn9Veto66TVwQA1V9OFWG+vQ3THPeMpzGUcyP/Ui6FBx036YnU11+9erHCW7KCHD3wNaOy2sHkyWNkszo4ByOAaNKWEPVF775VAoGBALlPODsKIcJWhoON+bquu3cUFJCUXpAwS5mLAkhkBWotvIWIUxNVaBA5FRIQ/XunF9ynhkQ8BsC0tvGYMia/JAgbcKD6kjqKhnTYkxcNypieBbGlO54FB0Gvp8+YD1Vclja6UW97NteL3lyuvyMKG3KmvIkWq1du4kvJiUBqBRhg",
    spki: "MIIBIjANBgkqhkiG9w0BAQEFAAOCAQ8AMIIBCgKCAQEAiAmnAO8OfuTlA6a8W1lHsQFe/A8P7uiF31AhI7NQJclepHaH4LeAHICfFN3GeJoH3PO9ZhCld32Og7o8GFu+rCthIKcUxll0k8NdIIwoH91zLFO8xR5I6ru8SHARRo3teKay1mDC61TWUWnzJEF9+V8RMoFO6OYkKJXXxNkQqbuhiQiqerX75qG+wUYyNBGU+TLE3U2juQ8INX7qVO9mQMPip94KMFgQ76q17gUeBdjgB3pwxFgvNdYiLV2MFESWXmw/lQS5RLrUcx70VQqHUbtW5wfaVUCcGhjhsYZjmAM092U6gKMEsQNEF5qFOEGqN+rsrBSd9Euj55uZgYuf0QIDAQAB",
    jwk: {
      kty: "RSA",
      n: "iAmnAO8OfuTlA6a8W1lHsQFe_A8P7uiF31AhI7NQJclepHaH4LeAHICfFN3GeJoH3PO9ZhCld32Og7o8GFu-rCthIKcUxll0k8NdIIwoH91zLFO8xR5I6ru8SHARRo3teKay1mDC61TWUWnzJEF9-V8RMoFO6OYkKJXXxNkQqbuhiQiqerX75qG-wUYyNBGU-TLE3U2juQ8INX7qVO9mQMPip94KMFgQ76q17gUeBdjgB3pwxFgvNdYiLV2MFESWXmw_lQS5RLrUcx70VQqHUbtW5wfaVUCcGhjhsYZjmAM092U6gKMEsQNEF5qFOEGqN-rsrBSd9Euj55uZgYuf0Q",
      e: "AQAB",
      d: "Cpo_UbjQDJQixJlAW-7w7KWair2nycCF_TooYw5s2Y0WGxkBN8Ka3F3VSDyNZUU9W1CvOx8NWRXy6hG1Rla8MnytCheg7GFOJIgY9YTxnvjVAFLvHFPjGKcUzSEtj4NXS0x-wBZJitWRYJtdL78KUPRtCYkqJnJtcLEBC0lkXZNyMa-BGYNMWRAoV5GE312kksAhnUFG6b493GYyCr8dSWJQf9Snr8nsg0c33v4owd7a9BYbsGncKly1Jc1JpRyvBBLdy21tjhw_iuYB-pPwwufBVXGnfGy4Meh8VskUX4ylfQVtzFcVSQGMm79lYtAbaXY1N-CAXSwJZCZC1abJmQ",
      p: "v39SnETCpc6Lmveaz-XKnOrAviBFJUx5tUjKm9tblbLdLdx9TbPp6NTY8wXoDfaQ3KFoOVAwmkIl257g5W666BxOVJ2IdCpNWmLx-E9GM7I8OZz2DJCJ23Z0fA7ioqLLQlG8NNzVOKz-lUhDHYk4xmouGup2vX_0Z4eFTipT-K0",
      q: "tdwVoG6unyQqN52BOnvK_nxBJFTB6vB46Ncqv9BVhfgD1M4PU0WtkTgtdqX0bb0462cna34zducZLKUAgjTroc63FqF8kk9OBxuRIw17Hnq94Gjike48UFuR-WXbjavVuIrVfr06hAPgUNJddFHp7hdhr3qcq5HzDY4Fn0T-NDU",
      dp: "Rs7klAXU14x1EJsnsmHstnMTS_oQt0b85eyBhnno9oSJxlB2QMoa3s39Xnc7pBYc4IgKSs78-b0l1Hx9-jgkgnkc-aq6bwHJUnetszxU3_6yyDbiwCid4Pl-_vReFvcNI3unlQBnEyrchASRVJWN2cgfPjKeL1nl3HY-83UxUY0",
      dq: "m1TdYAfJvQId0R0F6RcdfppQ5aBDddFp5K8Lw4RF2ETLuPM8IcstAhGyu1nqWeU6fc7A286SVKf1V62jrpNXBADVX04VYb69DdMc94ynMZRzI_9SLoUHHTfpidTXX716scJbsoIcPfA1o7LaweTJY2SzOjgHI4Bo0pYQ9UXvvlU",
      qi: "uU84OwohwlaGg435uq67dxQUkJRekDBLmYsCSGQFai28hYhTE1VoEDkVEhD9e6cX3KeGRDwGwLS28ZgyJr8kCBtwoPqSOoqGdNiTFw3KmJ4FsaU7ngUHQa-nz5gPVVyWNrpRb3s214veXK6_Iwobcqa8iRarV27iS8mJQGoFGGA"
    },
    pkcs1: {
      "SHA-1": "Xo9rwdt/ZYeNQm0qWcwtgt2ynMY1u2WkPfZvmtM66esWlqLvfXHp0nd2GrqfrOpp/SIY+gse8JrD6yZ6e2iXFIsRn/uGEjzueoRW1lQBsa2LecBjDDvKv6pPlcXkCkX6V2BkkLy8EXcQp5vN1ik3STeO/WoMm4jDD//Q/IdUPfn8RNz/Znwyzji+O+pmc/ZjlRjHzi8UCz2SaBDmEYPIJqN60dVMl0jvTfBM6Y3iPz4UZri6MzOg7gq+73xJeSF+gm1eJU4gZSoTwR092GqO+BwHUPETiOvw+MrBRSy+j6q6YYQ0MxaBuJAzej7Kat5zM7em8+Fsu6RGeRIrecWszA==",
      "SHA-256": "Aqpm3iJ9ZpfDkPWVDUvuS12ttD2uKfOLyoy69k3hl0oGy5TcwETzG+MrVI3gjIZWLQCdTPrfmmdJkqEhh+e+HmL9o/ZbcNemsZTWnovfaU8k1E6odjGkJuw5zwmqVG4NiCxt+zo8Q9Ks8mBhAvTyT6ndzutPb/BTqBViz7/VMegzln99xnVgAXZvghSkIBXe94XOdsOJVgxbOCRJ/bUiQgcKmz0IdgJizuBzcHBG1frSzt9uFdeqJijGtFgKQv1rI7Wcfz3RtyEELtg54bBET8qNlnl+OXB1keDJHhBp01t9bY4s+WWdETTb1X2H3dOOyhP4E1YxtoiTKOZ/gGgHag==",
      "SHA-384": "Tnzr/FebS4tWsDNyYDprWZ74tcis9939z1fgM1TAYtP73pr9LEDn7Bflbdi05pMGErLj48vjp/Vj3xAcw6JmItnC+DVGJarnvoVGnOiBHTdO9/32yYQZDU623WzMua4Lip4e49nUjoxujb/wRzda4aTyz9oF36r/9U7DgYc6KtedQX5CPFiWJ7q1749k65Xatqis1m3wEs68034klW4Rmazw/WuL/eDzkeIaN+yHYnfOH8wzYnuR6JNj0QRr9NPsjWTiLY5LOrLtCbrYmgjwarQTGq2W9+UNlBoG+ntTnn3LOb15uJD6jn1Y0+gA52VlkeOF0S3n18GsEi2sdn4i2w==",
      "SHA-512": "DL/YS5dy3AQkdG1WUahHGxG+ZulP2abVXb77wNzE9g/vxLU5UTQUK9MJAp2Zra4D+VoYi0QYVZpQMIAs0umFQuANLlXGPp5QFI7c4j3NDSWVj2qorOpN/6nECtfdvoLFabtzEsKnfL4As4TcJHn7AZvqPgHOJY408YUZ+iJyElzgesvHsmbNwiwW6LNNcxVSLw9Q0d1tROCxvuxymJyVGWkleqg9ZQYlmgXTVBgUIIFU9ehRWnM7PwP1EDxcRmYr5buuSIC7zXsCtM1ftixT5c3uCqbuoCGUbdg8iTJCi+V+8VGkFHDBjsuhtL+mbtUuZl8UcPJUvGwd2YLazwRhMQ=="
    },
    pss0: {
      "SHA-1": "PagQyaMBpw3H2HsMyu/u2ubjzj9bfdHDsSo7ZiRELT1iUUeFwPICgeTPbHLJkKSQRPjmL3qryv9Ytb168QeG74MPw9khkk+TsnZBWZHLkioB977lbR5WQiXNO4I7IJRK0x5r6kJ3a13iii3e3t/4HecvRWFk7nr+LUmAiNrW9DnTWB19x9vzZBM96DO/Jq3GOIsq/3a+hQPADOkv7qcWSxrhBq+USv29W18Eu5GP+g12Dsf8za1pvV2sAgUa+YaK7e/BzG0ktHM1bClvkrQ5LFr8oQls1NcTRHSQWp5KwZI9gzjfYjG2W4q3X11MEmLZj4lqmUHF2dL9r3VfkB4yXg==",
      "SHA-256": "SbmBbV/kE21frEKxZv2q+jLnTTpuzMvOoVzJT7va5H/femsrDorko7ZCn+BUEecPQT+MTP2kZtMoRMk5L4+/EjzTRUnZpOu8YO4kI3v3umzaAhyLaNBKeGW/ciFqvH5mybrDycNnv5Cryhc7akS2aM041MRaVzDDtctaoAIcdQJHrpORWigpSOtC9vgwm3L6zbczzunBcmYlcET14tf9r+DfVlTi9vH1GU/7/ihLgth5gXlYY/l9pnOXdpexIoeoF5Ad8KEktLibO61FyYoaxOGQTJUQtFyx0lQaxvvT8c9CiSEbzdYCk6diaiZQGXcM1na/l73ap/C05eH736CXSw==",
      "SHA-384": "Bz7ky1/9aS7IkXFOpju0AneBTKwYm993xDhk0dicvImHb5keu/4OSaVf1mx3JiWJGFMpKJUd1nBfY8CZ0ga90Gc7gY5Ff7w0ccJq4mM9Ff1YRuz7dFInhEWQ5j7rSpSN9GjEsx9r3q2zZzOTA7RUaKINCOwT5hmawDA42m8PowLsEZMkmbVpOGjA9Z3NmHBpcXI7c/gUVhfLzR8unyu/hz4ovC7BGD/crmy6nZ2ET8yFmmv/0FZk+et0Z/0msJ/ihR2r/Hs8AnJcFOc8kugZ1Q22QM2KrhdqPVnT6gfYhR1qTG4YxTlXnwVA6eWKOW5vq2alTMK9UhljN7sCujDHRw==",
      "SHA-512": "Etp6IS9b9BTyY104zSrJfdxnjbZL05aopXMb6xeDZASCEYU8xH7ckxiXFD6G3ZdB3w8GMz5e/sAlPk8h5HiCuKswrIK2vm9zAYg1sOJJz+hw6CdWR0J/X+7qKHi4bgWDosvcx+hyeUa5r+Hn7Hw6E6hvGSl2aIurgEclB0Fn+n2jMyrZewJA0znN1j7zTi6deD5QwiDmYaVUMLK1zJnnQ0iTZRO6+uXG6Dh709NRBh5Om7xYdE+SUTQTxXQTXmI/ubTSCVhDBalY1GFr/U3jElx0p0+HY3Crlk5BXD0y72PW/YIrZvzNxpiAyUxVXrJMKxAAzkzqLBUoDl2VtEN62g=="
    },
    pss20: {
      "SHA-1": "dS+q0k8kk1G/hefXm07X3VlGWCLM3GjV2TAOhr8WjnmIh2ALQ4fV1osOS2hetsrOA7ZUMmrqHKBxvutMf9T5CHJeVp1tv+4d/cMcsl/0nLTkEfZSY/VjZI1NFSrnArzMGiy3ouVkLcWAKyX6oxXo4Xfz5q5ZYe+cpuYhXQSYGHsFxVHGjMdgbypfGDAXK4py7XU8DgHfQKAveKGEWjhwkGFARy6KIdDmn4St8zoaPuVR5h6ZJPmS7/ovPR3v2TpMCiiFq+IWnEmZ24vWJ4vBAINvQPIkdJLcHqQgLHfg03BwKLX6DoJy2ha4djulZcywXMgE3f+ya4m5ixy+78di1w==",
      "SHA-256": "YPt7hsU2aqPmWEMo22w4loPHsSeocDw/1A5LJUhH5nhSTV8ZO+h46zJ4N3duMqXmuaTrlXh2R4WIkcTp6k3AM66GOGAatGFB/OCFglfaZ70D2VMk45Viy5whJEhgWsjHgh1AD9JFXChVGN0451R1Sqkfh2tg/jzedZ8Fw7QISS0bxuV0E95NtnKGL2gIoZPVaNDuv1+XwtZQjHfXGKq3ee/n+qY1GihXdFlQCuVPpziZmlfwb5JgNE5TB6ovRQ028fAlt9DaOVt5TGHG9jUrUn+kUYquasjS0r5SN+QBUer4uBfC7vHMRRO5iISHW9YSv7dKxvZda2PaiNeGWheKUA==",
      "SHA-384": "E3k2ZATwFRcl5sjU+5zgVL58X9CN+c69IAlHWyVgx6B8B62Oj0h3xmp4t4lov1iA13OXzTZ647AfBbHcbv35BqT0Vtxl+yq3JVJ/hUNSNtGGxdC6bFvFH1K8x/iXKRZNyL82r6Y4ZZEhlQ1JnbCA0b2pvra7xpEgvok94iehq6b8fJtjM1x7xD7uBZC5yogYHFKSNaCFpdpK6GrHw459Xw/D0A2kQNcsDtoNuwF1n7aQXKIeMLfSVd3sS8FP1Wv9N9a9v1r4w+A7n8TXVpUjqp6iCbg6DU29x2GeCwk+fO3dOiUCXyCp3c1y2vWUDormhsLS8CqKlMFGHH8tsYbNbw==",
      "SHA-512": "UvxkukHbRxgabsS4+B2RNDjud5OHzJhCX8jpwyPYWiDdEsyn3EptEGdt0ZCYABjJqu34PrXLIOImly2YX1eMmIi/J2H67oGQZYHB46n6rhY4FIH6An277jAaU2bi0RHprUhymiQAsCmylOTrEHjFohVJfVTsZmY0yZUw8lDbny21NO42Rma+yu2/ZmLDS76RhBeIArMy4taAY6vVS6eHv53xaEhlO6EsAqTOEvqdSV1ZMfjBZiSRw94KBMvo7rxkDg2b18NHTlAJtsnQNeJHuaf1g+RvcWZVreCXDWFEXCoMFNZRcqzTVNq2FFCaKuQIDkGNvLNTzNHPtXncdDYTIQ=="
    },
    oaep: {
      "SHA-1": "DRA/FGr96p3LLxufotapMsPsTzFmgr0xzSIcscIIWcHZqJuO75dXMS5WQs4F29/nl6LaDNKq0oaBPul03TpPTjkK2NcJ2/wK1gcTU2IRbpehmojodV1tlvHp8gSZqub70IpEZojF1+lM19pOoV8BbRzPPfMYhM6EJ7DdwdTL6U7EADcRw14UzOyiXaU1ykbYZApgceu/r3vWZj0ukQnK4RLHICWLG9DGVA7dGO8zVbMQBSPL/t2cnsOMyOKkIW0gDQbgEpapuw0dv4AuuKjuSUP3V9f/KpiXcNtlPYpQYDiZ1v7w2UKMH1bu3ZQkPfMgGjzLVlzLdAnIpFjyEXxaEg==",
      "SHA-256": "Juzg1HRMHUua5QR/G8yuSxYnF3F3uZndsKr5oCK1j+OBM8pFzjFDyfsUp5mk4jpA3Ro0/2JATlXkPYjb55MaipfjoxK1hFNZQvd7ENeRouswziKP7YJipsloy4qmG/+gZVn02hV4PwQBmHJp7cOaUL5ySI46Xco9JPeOsXufuYCUVQZzJhRj278xGTJse3MT9Yrju1IBxBmCfm0A99eyqy9bgFIO7MqRVHrQtcYdVDUPNVNeqWE85e+ZAGIZ85gQg4oqcIddmCG3ZYrv+Cc4O1xltnrcSJdA3tOPgpGheCwHGN+u5AJc2f7zQtuRn3R3/2YjTuPQPnulc22VL3iCqQ==",
      "SHA-384": "AMCEoV+0eK6zQ5jG+bWPem0FAv4Uk61iSWX7INL2lPZ0xUutzuCWk0XL8lFr0cX+WJoEuTOBlfJZzLAVw/H8b7H/80qOedTd6n08j1V/wznSRh7KEBjgrmxzDQbm4atQGfh2fF7vzwn/HyVtVZxLj9c3fs5wHcGQ97egeNQBO7d1+UGow8lTW76cvvg3mtmnw+6mbUEWBVwdoOzxGsdQ1jAUEc/E22XgYIa86cwQLw5Vq7MFpxJDcQ/rmlHIjxHjTPYpASv3t9SuPlEHHRK1WV7H4Kq/7dCI3Zku9UnhnGM5EPvGp+cwMLjmL6SkukO/wcDNUrzQuYZgK3VfG8fINQ==",
      "SHA-512": "dqwOQtCsN99MUm4ubUjYKnrRvdk6jh/ZT81UnSZ/ybHzvaUo4zg8pIMJ9iVwNrgaRcj4VzOLVT0KMowhjeBQ9Pb6OBh7pqintoS/2w+dRZi064UC/CgAeOFXR5rKTolePvoEkq2tv51DPmSfpGEJ3W39c+9j49PwUextqHq0te6yXOdKQ3Lwquo8wnORbY8h4a3O2cYLz5D6ThtHb5oRPbScYOmvZpm5uvrXW+nSgWCwhyJA4TSGd1OHHVzTRgLg04qBQU8TiCLWz/+5vkp+QS2i1mADxoZSWvhGkd8CxJ5sspSkHIVXjBLDkROf4eblQVDfPnWdU3lWijcUMIMGuQ=="
    }
  },
  ec: {
    "P-256": {
      jwk: {
        kty: "EC",
        x: "hwsMHVagrfasqBlHBWvpc26kdsRBOUkk1ehPYD7EC8g",
        y: "H71ZbNYUetvRgUmSl3MHnhg2JWIa_rAmlnd5S88s-Eo",
        crv: "P-256",
        d: "LSNqtD5eiAw_G-inWOYHgVul9HPm6j-kIx2lu0AYVs8"
      },
      pkcs8: "MIGHAgEAMBMGByqGSM49AgEGCCqGSM49AwEHBG0wawIBAQQgLSNqtD5eiAw/G+inWOYHgVul9HPm6j+kIx2lu0AYVs+hRANCAASHCwwdVqCt9qyoGUcFa+lzbqR2xEE5SSTV6E9gPsQLyB+9WWzWFHrb0YFJkpdzB54YNiViGv6wJpZ3eUvPLPhK",
      spki: "MFkwEwYHKoZIzj0CAQYIKoZIzj0DAQcDQgAEhwsMHVagrfasqBlHBWvpc26kdsRBOUkk1ehPYD7EC8gfvVls1hR629GBSZKXcweeGDYlYhr+sCaWd3lLzyz4Sg==",
      raw: "BIcLDB1WoK32rKgZRwVr6XNupHbEQTlJJNXoT2A+xAvIH71ZbNYUetvRgUmSl3MHnhg2JWIa/rAmlnd5S88s+Eo=",
      compressed: "AocLDB1WoK32rKgZRwVr6XNupHbEQTlJJNXoT2A+xAvI",
      hash: "SHA-256",
      signature: "AvqFNEb0L5c8Tp0guBGCDCcFVSRrNT2HQfa/WXRYVMtotLI7Cp+AMQkbhppzTIwYs3UDsh82E9VtIzw5sUebgg==",
      peer: {
        crv: "P-256",
        kty: "EC",
        x: "nMQ_ecwzKSNfiloD5sh_ogDiowXS9OGqVtBgxSPp9K0",
        y: "N4Te4XwfGJ5AOrKbjRhNFAbHwYD_D8eYwwxpvejPKFw"
      },
      secret: "PlvjmgoV/SEAlHXZTGQdCMjKjjbHSlJIWldt+HEVm+k="
    },
    "P-384": {
      jwk: {
        kty: "EC",
        x: "B4o_Sg689HEjA6aJZMyPuIw_hj-94LChmu7pl_p4zM9USi4JoOdqY5OHCwnhxpHk",
        y: "NXri8mrHXQfWjQlXxKA2VUJYGjNBdo-HOVYpbLijEvE0xQsRmiwyS-58vXGHnhlV",
        crv: "P-384",
        d: "lETUc2pZt-Wd_iAixATqn17zIH6ncfiHlUDVlNW0zS6_73FAwAr4RfKkBVASrgF_"
      },
      pkcs8: "MIG2AgEAMBAGByqGSM49AgEGBSuBBAAiBIGeMIGbAgEBBDCURNRzalm35Z3+ICLEBOqfXvMgfqdx+IeVQNWU1bTNLr/vcUDACvhF8qQFUBKuAX+hZANiAAQHij9KDrz0cSMDpolkzI+4jD+GP73gsKGa7umX+njMz1RKLgmg52pjk4cLCeHGkeQ1euLyasddB9aNCVfEoDZVQlgaM0F2j4c5VilsuKMS8TTFCxGaLDJL7ny9cYeeGVU=",
      spki: "MHYwEAYHKoZIzj0CAQYFK4EEACIDYgAEB4o/Sg689HEjA6aJZMyPuIw/hj+94LChmu7pl/p4zM9USi4JoOdqY5OHCwnhxpHkNXri8mrHXQfWjQlXxKA2VUJYGjNBdo+HOVYpbLijEvE0xQsRmiwyS+58vXGHnhlV",
      raw: "BAeKP0oOvPRxIwOmiWTMj7iMP4Y/veCwoZru6Zf6eMzPVEouCaDnamOThwsJ4caR5DV64vJqx10H1o0JV8SgNlVCWBozQXaPhzlWKWy4oxLxNMULEZosMkvufL1xh54ZVQ==",
      compressed: "AweKP0oOvPRxIwOmiWTMj7iMP4Y/veCwoZru6Zf6eMzPVEouCaDnamOThwsJ4caR5A==",
      hash: "SHA-384",
      signature: "U3/JjWHnqj+CqFiRDIW6fTVOz07uXoL9glXfIqp6gM6/Slv6iAIPb5RCCog9+aiA5V1e1mHwTS+AUa7v4thYHbe+MSyHjMOBL1romHJVp4QlUr/hXuLBc3ELCGAM8Xiw",
      peer: {
        crv: "P-384",
        kty: "EC",
        x: "TijJkiVDGa2ah8At4xoiRQLXpvvR602uGyA2tJnJmHitn7N-O2CxTKpbospMtAmP",
        y: "nnoQ0i_S38c0qjfQAJlHrk6U3n3pmkNkxxJp8UTiSuRHeEEAqlZD95qzrHkg3r0P"
      },
      secret: "9MpgAAlVy7toa84e08VhRLVdXM5lfaSwT2BdcmxlwzhuTcENkQHN22r75lySjn3f"
    },
    "P-521": {
      jwk: {
        kty: "EC",
        x: "AXsk_n2z1exW4SRvmRiNIepmy7xY9_W5PCqfPVScv9clhVelj5R_KGy1Ae-o5Zug3eVECSxIoHn5Ev7QC-R8IqNg",
        y: "AKUGh6me_domJr75eYTwQdLvrS77ColU6lp5rDMAJ7sZ56EeqlOHNQXhOkHOy3Bipf5pDuuUUno0JKkxAnVl_5Y8",
        crv: "P-521",
        d: "ASiK8vTmSxsnsos4QnxokZsh9e_Plgvii9r-bkgs-PYHYgXky1KpeG9M7OiBO8OoNwXx_9Jqt3PohKO-irG8IyzB"
      },
      pkcs8: "MIHuAgEAMBAGByqGSM49AgEGBSuBBAAjBIHWMIHTAgEBBEIBKIry9OZLGyeyizhCfGiRmyH178+WC+KL2v5uSCz49gdiBeTLUql4b0zs6IE7w6g3BfH/0mq3c+iEo76KsbwjLMGhgYkDgYYABAF7JP59s9XsVuEkb5kYjSHqZsu8WPf1uTwqnz1UnL/XJYVXpY+UfyhstQHvqOWboN3lRAksSKB5+RL+0AvkfCKjYAClBoepnv3aJia++XmE8EHS760u+wqJVOpaeawzACe7GeehHqpThzUF4TpBzstwYqX+aQ7rlFJ6NCSpMQJ1Zf+WPA==",
      spki: "MIGbMBAGByqGSM49AgEGBSuBBAAjA4GGAAQBeyT+fbPV7FbhJG+ZGI0h6mbLvFj39bk8Kp89VJy/1yWFV6WPlH8obLUB76jlm6Dd5UQJLEigefkS/tAL5Hwio2AApQaHqZ792iYmvvl5hPBB0u+tLvsKiVTqWnmsMwAnuxnnoR6qU4c1BeE6Qc7LcGKl/mkO65RSejQkqTECdWX/ljw=",
      raw: "BAF7JP59s9XsVuEkb5kYjSHqZsu8WPf1uTwqnz1UnL/XJYVXpY+UfyhstQHvqOWboN3lRAksSKB5+RL+0AvkfCKjYAClBoepnv3aJia++XmE8EHS760u+wqJVOpaeawzACe7GeehHqpThzUF4TpBzstwYqX+aQ7rlFJ6NCSpMQJ1Zf+WPA==",
      compressed: "AgF7JP59s9XsVuEkb5kYjSHqZsu8WPf1uTwqnz1UnL/XJYVXpY+UfyhstQHvqOWboN3lRAksSKB5+RL+0AvkfCKjYA==",
      hash: "SHA-512",
      signature: "AJitZztcrnCV6tXOaiQ598iHy+swocenmr6HNB6oCqTnvdLm9MFFzO7vc2/TecP+VYH3SKwLJhsYvIpvqjFU3SN8APp3qUR9iDTqQjysf03We3idiWTX+E3vEQbG3UvYDKgrsElS+bnBS8bnWhUFfQe3iy81uXqXZwBnatFD4YWTnXJx",
      peer: {
        crv: "P-521",
        kty: "EC",
        x: "AMAJPVAVOVYHvoFOzQZdcGjI6LGUHajU7wiAQtuwZBQDCjB_JhM1Fu6xXSAM49vuM8-2bi5JpCnQB7yfGA4PY7RR",
        y: "AVHzdoW5WuUGt_nMtn_8lm4dBaXHSo9lXMXwgQRdjfO1zL6rHQqHfuSbmhizYnvyVGrHX54B8ZKoNwUfpOc9Atm4"
      },
      secret: "AWmbgIeN/FIPCK3p8J8Lb28V5G0PXPQgXjzODPmmUCkxNdUFS05sFfzGjXfsUvQLqdY68mk9HPiAkm6b97CZhC4t"
    }
  },
  ed25519: {
    jwk: {
      crv: "Ed25519",
      d: "5z-iOF8a2AkPLhfYEVGJ6qrLL4Pqh683P_lIC8x_GAc",
      x: "3VX50qnu-kUCXFdlTSwcMi40u8MXdxrRon886tU6qeY",
      kty: "OKP"
    },
    pkcs8: "MC4CAQAwBQYDK2VwBCIEIOc/ojhfGtgJDy4X2BFRieqqyy+D6oevNz/5SAvMfxgH",
    spki: "MCowBQYDK2VwAyEA3VX50qnu+kUCXFdlTSwcMi40u8MXdxrRon886tU6qeY="
  },
  x25519: {
    jwk: {
      crv: "X25519",
      d: "QLDBlwDQ4PYh_zVEB9NDwXZZvCC6yu1CxoaaHnnafkk",
      x: "OLbOyGKztc1Lq04mhN_iJS4TV2Yo2j0_k1wVSABnqEE",
      kty: "OKP"
    },
    pkcs8: "MC4CAQAwBQYDK2VuBCIEIECwwZcA0OD2If81RAfTQ8F2WbwgusrtQsaGmh552n5J",
    spki: "MCowBQYDK2VuAyEAOLbOyGKztc1Lq04mhN/iJS4TV2Yo2j0/k1wVSABnqEE="
  }
};

test("X25519: RFC 7748, 6.1", async () => {
  const a = "77076d0a7318a57d3c16c17251b26645df4c2f87ebc0992ab177fba51db92c2a";
  const b = "5dab087e624a8a4b79e17f8b83800ee66f3bb1292618b6fd1c2f8b27ff88e0eb";
  const A = "8520f0098930a754748b7ddcb43ef75a0dbf3a0d26381af4eba4a98eaa9b4e6a";
  const B = "de9edb7d7b7dc1b4d35b61c2ece435373f8343c85b78674dadfc7e146f882b4f";
  const secret = "4a5d9d5ba4ce2de1728e3bf480350f25e07e21c947d19e3376f09b3c1e161742";
  const head = "302e020100300506032b656e04220420";
  const priv = (k) => subtle.importKey("pkcs8", un(head + k), "X25519", true, ["deriveBits"]);
  const pub = (k) => subtle.importKey("raw", un(k), "X25519", true, []);
  const [ka, kb, kA] = [await priv(a), await priv(b), await pub(A)];
  assert.equal(hex(b64((await subtle.exportKey("jwk", ka)).x)), A);
  const publicB = await pub(hex(b64((await subtle.exportKey("jwk", kb)).x)));
  assert.equal(hex(await subtle.exportKey("raw", publicB)), B);
  assert.equal(hex(await subtle.deriveBits({ name: "X25519", public: publicB }, ka, 256)), secret);
  assert.equal(hex(await subtle.deriveBits({ name: "x25519", public: kA }, kb, null)), secret);
  assert.equal(hex(await subtle.deriveBits({ name: "X25519", public: kA }, kb)), secret);
  assert.equal(hex(await subtle.deriveBits({ name: "X25519", public: kA }, kb, 8)), "4a");
  assert.equal(hex(await subtle.deriveBits({ name: "X25519", public: kA }, kb, 12)), "4a50");
  assert.equal(hex(await subtle.deriveBits({ name: "X25519", public: kA }, kb, 0)), "");
  await assert.rejects(subtle.deriveBits({ name: "X25519", public: kA }, kb, 264), "OperationError");
  for (const point of ["00".repeat(32), "01" + "00".repeat(31), "e0eb7a7c3b41b8ae1656e3faf19fc46ada098deb9c32b1fd866205165f49b800"]) {
    await assert.rejects(subtle.deriveBits({ name: "X25519", public: await pub(point) }, ka, 256), "OperationError", "a secret of zeros");
  }
  await assert.rejects(subtle.deriveBits({ name: "X25519", public: ka }, kb, 256), "InvalidAccessError");
  await assert.rejects(subtle.deriveBits({ name: "X25519", public: {} }, kb, 256), TypeError);
  await assert.rejects(subtle.deriveBits({ name: "X25519" }, kb, 256), TypeError);
  await assert.rejects(subtle.deriveBits("X25519", kb, 256), TypeError);
});

test("Ed25519: RFC 8032, 7.1", async () => {
  const cases = [
    ["9d61b19deffd5a60ba844af492ec2cc44449c5697b326919703bac031cae7f60", "d75a980182b10ab7d54bfed3c964073a0ee172f3daa62325af021a68f707511a", "",
      "e5564300c360ac729086e2cc806e828a84877f1eb8e5d974d873e065224901555fb8821590a33bacc61e39701cf9b46bd25bf5f0595bbe24655141438e7a100b"],
    ["4ccd089b28ff96da9db6c346ec114e0f5b8a319f35aba624da8cf6ed4fb8a6fb", "3d4017c3e843895a92b70aa74d1b7ebc9c982ccf2ec4968cc0cd55f12af4660c", "72",
      "92a009a9f0d4cab8720e820b5f642540a2b27b5416503f8fb3762223ebdb69da085ac1e43e15996e458f3613d0f11d8c387b2eaeb4302aeeb00d291612bb0c00"],
    ["c5aa8df43f9f837bedb7442f31dcb7b166d38535076f094b85ce3a2e0b4458f7", "fc51cd8e6218a1a38da47ed00230f0580816ed13ba3303ac5deb911548908025", "af82",
      "6291d657deec24024827e69c3abe01a30ce548a284743a445e3680d7db5ac3ac18ff9b538d16f290ae67f760984dc6594a7c15e9716ed28dc027beceea1ec40a"],
  ];
  for (const [seed, point, data, signature] of cases) {
    const priv = await subtle.importKey("pkcs8", un("302e020100300506032b657004220420" + seed), "Ed25519", false, ["sign"]);
    const pub = await subtle.importKey("raw", un(point), { name: "ed25519" }, true, ["verify"]);
    assert.equal(hex(await subtle.sign("Ed25519", priv, un(data))), signature);
    assert.equal(await subtle.verify("Ed25519", pub, un(signature), un(data)), true);
    assert.equal(await subtle.verify("Ed25519", pub, flip(un(signature)), un(data)), false);
    assert.equal(await subtle.verify("Ed25519", pub, flip(un(signature), 63), un(data)), false);
    assert.equal(await subtle.verify("Ed25519", pub, un(signature), un(data + "00")), false);
    assert.equal(await subtle.verify("Ed25519", pub, un(signature + "00"), un(data)), false);
  }
});

test("Ed25519: points of small order verify nothing", async () => {
  const points = ["0000000000000000000000000000000000000000000000000000000000000000", "0000000000000000000000000000000000000000000000000000000000000080",
    "0100000000000000000000000000000000000000000000000000000000000000", "0100000000000000000000000000000000000000000000000000000000000080",
    "ecffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff7f", "edffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff7f",
    "26e8958fc2b227b045c3f489f2ef98f0d5dfac05d3c63339b13802886d53fc05", "26e8958fc2b227b045c3f489f2ef98f0d5dfac05d3c63339b13802886d53fc85",
    "c7176a703d4dd84fba3c0b760d10670f2a2053fa2c39ccc64ec7fd7792ac037a", "c7176a703d4dd84fba3c0b760d10670f2a2053fa2c39ccc64ec7fd7792ac03fa"];
  const { publicKey } = await subtle.generateKey("Ed25519", false, ["sign", "verify"]);
  for (const point of points) {
    const key = await subtle.importKey("raw", un(point), "Ed25519", true, ["verify"]);
    assert.equal(await subtle.verify("Ed25519", key, un(point + "00".repeat(32)), text("any")), false, point);
    assert.equal(await subtle.verify("Ed25519", key, un("01" + "00".repeat(63)), text("any")), false, point);
    assert.equal(await subtle.verify("Ed25519", publicKey, un(point + "00".repeat(32)), text("any")), false, point);
  }
});

test("X448: RFC 7748, 6.2", async () => {
  const alice = "9a8f4925d1519f5775cf46b04b5800d4ee9ee8bae8bc5565d498c28dd9c9baf574a9419744897391006382a6f127ab1d9ac2d8c0a598726b";
  const aliceX = "9b08f7cc31b7e3e67d22d5aea121074a273bd2b83de09c63faa73d2c22c5d9bbc836647241d953d40c5b12da88120d53177f80e532c41fa0";
  const bob = "1c306a7ac2a0e2e0990b294470cba339e6453772b075811d8fad0d1d6927c120bb5ee8972b0d3e21374c9c921b09d1b0366f10b65173992d";
  const bobX = "3eb7a829b0cd20f5bcfc0b599b6feccf6da4627107bdb0d4f345b43027d8b972fc3e34fb4232a13ca706dcb57aec3dae07bdc1c67bf33609";
  const secret = "07fff4181ac6cc95ec1c16a94a0f74d12da232ce40a77552281d282bb60c0b56fd2464c335543936521c24403085d59a449a5037514a879d";
  const head = "3046020100300506032b656f043a0438";
  const priv = (k) => subtle.importKey("pkcs8", un(head + k), "X448", true, ["deriveBits"]);
  const pub = (k) => subtle.importKey("raw", un(k), "X448", true, []);
  const [ka, kb, pa, pb] = [await priv(alice), await priv(bob), await pub(aliceX), await pub(bobX)];
  assert.equal(hex(b64((await subtle.exportKey("jwk", ka)).x)), aliceX);
  assert.equal(hex(await subtle.exportKey("pkcs8", kb)), head + bob);
  assert.equal(hex(await subtle.deriveBits({ name: "X448", public: pb }, ka, 448)), secret);
  assert.equal(hex(await subtle.deriveBits({ name: "x448", public: pa }, kb, null)), secret);
  assert.equal(hex(await subtle.deriveBits({ name: "X448", public: pa }, kb, 8)), "07");
  await assert.rejects(subtle.deriveBits({ name: "X448", public: pa }, kb, 456), "OperationError");
  for (const point of ["00".repeat(56), "01" + "00".repeat(55)]) {
    await assert.rejects(subtle.deriveBits({ name: "X448", public: await pub(point) }, ka, 448), "OperationError", "a secret of zeros");
  }
  const other = await subtle.generateKey("X25519", false, ["deriveBits"]);
  await assert.rejects(subtle.deriveBits({ name: "X448", public: other.publicKey }, ka, 448), "InvalidAccessError");
});

test("Ed448: RFC 8032, 7.4", async () => {
  const cases = [
    ["6c82a562cb808d10d632be89c8513ebf6c929f34ddfa8c9f63c9960ef6e348a3528c8a3fcc2f044e39a3fc5b94492f8f032e7549a20098f95b",
      "5fd7449b59b461fd2ce787ec616ad46a1da1342485a70e1f8a0ea75d80e96778edf124769b46c7061bd6783df1e50f6cd1fa1abeafe8256180", "", "",
      "533a37f6bbe457251f023c0d88f976ae2dfb504a843e34d2074fd823d41a591f2b233f034f628281f2fd7a22ddd47d7828c59bd0a21bfd3980ff0d2028d4b18a9df63e006c5d1c2d345b925d8dc00b4104852db99ac5c7cdda8530a113a0f4dbb61149f05a7363268c71d95808ff2e652600"],
    ["c4eab05d357007c632f3dbb48489924d552b08fe0c353a0d4a1f00acda2c463afbea67c5e8d2877c5e3bc397a659949ef8021e954e0a12274e",
      "43ba28f430cdff456ae531545f7ecd0ac834a55d9358c0372bfa0c6c6798c0866aea01eb00742802b8438ea4cb82169c235160627b4c3a9480", "03", "",
      "26b8f91727bd62897af15e41eb43c377efb9c610d48f2335cb0bd0087810f4352541b143c4b981b7e18f62de8ccdf633fc1bf037ab7cd779805e0dbcc0aae1cbcee1afb2e027df36bc04dcecbf154336c19f0af7e0a6472905e799f1953d2a0ff3348ab21aa4adafd1d234441cf807c03a00"],
    ["c4eab05d357007c632f3dbb48489924d552b08fe0c353a0d4a1f00acda2c463afbea67c5e8d2877c5e3bc397a659949ef8021e954e0a12274e",
      "43ba28f430cdff456ae531545f7ecd0ac834a55d9358c0372bfa0c6c6798c0866aea01eb00742802b8438ea4cb82169c235160627b4c3a9480", "03", "666f6f",
      "d4f8f6131770dd46f40867d6fd5d5055de43541f8c5e35abbcd001b32a89f7d2151f7647f11d8ca2ae279fb842d607217fce6e042f6815ea000c85741de5c8da1144a6a1aba7f96de42505d7a7298524fda538fccbbb754f578c1cad10d54d0d5428407e85dcbc98a49155c13764e66c3c00"],
  ];
  const head = "3047020100300506032b6571043b0439";
  for (const [seed, point, data, context, signature] of cases) {
    const alg = context === "" ? "Ed448" : { name: "Ed448", context: un(context) };
    const priv = await subtle.importKey("pkcs8", un(head + seed), "Ed448", true, ["sign"]);
    const pub = await subtle.importKey("raw", un(point), { name: "ed448" }, true, ["verify"]);
    assert.equal(hex(await subtle.sign(alg, priv, un(data))), signature);
    assert.equal(await subtle.verify(alg, pub, un(signature), un(data)), true);
    assert.equal(await subtle.verify({ name: "Ed448", context: un("00") }, pub, un(signature), un(data)), false);
    for (const at of [0, 57, 113]) assert.equal(await subtle.verify(alg, pub, flip(un(signature), at), un(data)), false);
    assert.equal(await subtle.verify(alg, pub, un(signature), un(data + "00")), false);
    assert.equal(await subtle.verify(alg, pub, un(signature + "00"), un(data)), false);
    await assert.rejects(subtle.sign({ name: "Ed448", context: new Uint8Array(256) }, priv, un(data)), "OperationError");
    assert.deepEqual(await subtle.exportKey("jwk", pub), { alg: "Ed448", crv: "Ed448", ext: true, key_ops: ["verify"], kty: "OKP", x: (await subtle.exportKey("jwk", priv)).x });
    assert.equal(hex(await subtle.exportKey("pkcs8", priv)), head + seed);
    const spki = await subtle.exportKey("spki", pub);
    assert.equal(hex(spki), "3043300506032b6571033a00" + point);
    assert.equal(await subtle.verify(alg, await subtle.importKey("spki", spki, "Ed448", true, ["verify"]), un(signature), un(data)), true);
  }
  const p = "ff".repeat(28) + "fe" + "ff".repeat(27);
  const small = ["00".repeat(57), "01" + "00".repeat(56), "fe" + p.slice(2) + "00", p + "00", "00".repeat(28) + "ff".repeat(28) + "80"];
  const { publicKey } = await subtle.generateKey("Ed448", false, ["sign", "verify"]);
  for (const point of small) {
    const key = await subtle.importKey("raw", un(point), "Ed448", true, ["verify"]);
    assert.equal(await subtle.verify("Ed448", key, un(point + "00".repeat(57)), text("any")), false, point);
    assert.equal(await subtle.verify("Ed448", publicKey, un(point + "00".repeat(57)), text("any")), false, point);
  }
});

test("Ed448 and X448: what is refused", async () => {
  for (const [name, size, usage] of [["Ed448", 57, "sign"], ["X448", 56, "deriveBits"]]) {
    const pair = await subtle.generateKey(name, true, name === "Ed448" ? ["sign", "verify"] : [usage]);
    const jwk = await subtle.exportKey("jwk", pair.privateKey);
    const other = await subtle.exportKey("jwk", (await subtle.generateKey(name, true, name === "Ed448" ? ["sign", "verify"] : [usage])).privateKey);
    await assert.rejects(subtle.importKey("jwk", { ...jwk, x: other.x }, name, true, [usage]), "DataError", "another public key");
    const bad = { kty: "EC", crv: "Ed25519", d: "AAAA", x: "AAAA", use: name === "Ed448" ? "enc" : "sig", key_ops: ["verify"], ext: false };
    for (const [member, value] of Object.entries(bad)) await assert.rejects(subtle.importKey("jwk", { ...jwk, [member]: value }, name, true, [usage]), "DataError", member);
    const publicUsages = name === "Ed448" ? ["verify"] : [];
    for (const n of [0, 32, size - 1, size + 1]) await assert.rejects(subtle.importKey("raw", new Uint8Array(n), name, true, publicUsages), "DataError");
    const pkcs8 = new Uint8Array(await subtle.exportKey("pkcs8", pair.privateKey));
    const spki = new Uint8Array(await subtle.exportKey("spki", pair.publicKey));
    for (const [format, der, usages] of [["pkcs8", pkcs8, [usage]], ["spki", spki, publicUsages]]) {
      await assert.rejects(subtle.importKey(format, der.subarray(1), name, true, usages), "DataError");
      await assert.rejects(subtle.importKey(format, new Uint8Array([...der, 0]), name, true, usages), "DataError", "bytes after it");
      await assert.rejects(subtle.importKey(format, b64(fixture.ed25519[format]), name, true, usages), "DataError", "another algorithm");
      await assert.rejects(subtle.importKey(format, new Uint8Array(0), name, true, usages), "DataError");
    }
  }
});

test("Ed25519 and X25519: every format, as RFC 8037 and 8410 have them", async () => {
  for (const [name, data, usage] of [["Ed25519", fixture.ed25519, "sign"], ["X25519", fixture.x25519, "deriveBits"]]) {
    const publicUsages = name === "Ed25519" ? ["verify"] : [];
    const alg = name === "Ed25519" ? [["alg", name]] : [];
    const priv = await subtle.importKey("pkcs8", b64(data.pkcs8), name, true, [usage]);
    const fromJwk = await subtle.importKey("jwk", data.jwk, name, true, [usage]);
    const pub = await subtle.importKey("spki", b64(data.spki), name, true, publicUsages);
    assert.deepEqual(Object.entries(await subtle.exportKey("jwk", priv)), [...alg, ["crv", name], ["d", data.jwk.d], ["ext", true], ["key_ops", [usage]], ["kty", "OKP"], ["x", data.jwk.x]]);
    assert.deepEqual(new Uint8Array(await subtle.exportKey("pkcs8", fromJwk)), b64(data.pkcs8));
    assert.deepEqual(new Uint8Array(await subtle.exportKey("spki", pub)), b64(data.spki));
    assert.deepEqual(new Uint8Array(await subtle.exportKey("raw", pub)), b64(data.jwk.x));
    assert.deepEqual(Object.entries(await subtle.exportKey("jwk", pub)), [...alg, ["crv", name], ["ext", true], ["key_ops", publicUsages], ["kty", "OKP"], ["x", data.jwk.x]]);
    assert.deepEqual([priv.type, pub.type, pub.extractable, priv.algorithm, pub.usages], ["private", "public", true, { name }, publicUsages]);
    await assert.rejects(subtle.exportKey("spki", priv), "InvalidAccessError");
    await assert.rejects(subtle.exportKey("raw", priv), "InvalidAccessError");
    await assert.rejects(subtle.exportKey("pkcs8", pub), "InvalidAccessError");
    const bad = { kty: "EC", crv: "P-256", d: "AAAA", x: "AAAA", use: name === "Ed25519" ? "enc" : "sig", key_ops: ["verify"], ext: false };
    for (const [member, value] of Object.entries(bad)) await assert.rejects(subtle.importKey("jwk", { ...data.jwk, [member]: value }, name, true, [usage]), "DataError", member);
    await assert.rejects(subtle.importKey("jwk", { ...data.jwk, x: data.jwk.d }, name, true, [usage]), "DataError", "another public key");
    await assert.rejects(subtle.importKey("raw", new Uint8Array(31), name, true, publicUsages), "DataError");
    await assert.rejects(subtle.importKey("raw", new Uint8Array(33), name, true, publicUsages), "DataError");
    for (const format of ["pkcs8", "spki"]) {
      const usages = format === "pkcs8" ? [usage] : publicUsages;
      await assert.rejects(subtle.importKey(format, b64(data[format]).subarray(1), name, true, usages), "DataError");
      await assert.rejects(subtle.importKey(format, new Uint8Array([...b64(data[format]), 0]), name, true, usages), "DataError", "bytes after it");
      await assert.rejects(subtle.importKey(format, b64(fixture.ec["P-256"][format]), name, true, usages), "DataError", "another algorithm");
      await assert.rejects(subtle.importKey(format, new Uint8Array(0), name, true, usages), "DataError");
    }
    await assert.rejects(subtle.importKey("pkcs8", b64(data.pkcs8), name, true, []), "SyntaxError");
    await assert.rejects(subtle.importKey("pkcs8", b64(data.pkcs8), name, true, ["encrypt"]), "SyntaxError");
    await assert.rejects(subtle.importKey("spki", b64(data.spki), name, true, [usage]), "SyntaxError");
  }
  const { jwk } = fixture.ed25519;
  for (const alg of ["EdDSA", "Ed25519"]) assert.equal((await subtle.importKey("jwk", { ...jwk, alg }, "Ed25519", true, ["sign"])).type, "private");
  await assert.rejects(subtle.importKey("jwk", { ...jwk, alg: "ES256" }, "Ed25519", true, ["sign"]), "DataError");
});

test("ECDSA: RFC 7515, A.3", async () => {
  const jwk = { kty: "EC", crv: "P-256", x: "f83OJ3D2xF1Bg8vub9tLe1gHMzV76e8Tus9uPHvRVEU", y: "x_FEzRu9m36HLN_tue659LNpXW6pCyStikYjKIWI5a0" };
  const signed = text("eyJhbGciOiJFUzI1NiJ9.eyJpc3MiOiJqb2UiLA0KICJleHAiOjEzMDA4MTkzODAsDQogImh0dHA6Ly9leGFtcGxlLmNvbS9pc19yb290Ijp0cnVlfQ");
  const signature = b64("DtEhU3ljbEg8L38VWAfUAqOyKAM6-Xx-F4GawxaepmXFCgfTjDxw5djxLa8ISlSApmWQxfKTUJqPP3-Kg6NU1Q");
  const alg = { name: "ECDSA", hash: "SHA-256" };
  const pub = await subtle.importKey("jwk", jwk, { name: "ECDSA", namedCurve: "P-256" }, true, ["verify"]);
  assert.equal(await subtle.verify(alg, pub, signature, signed), true);
  assert.equal(await subtle.verify(alg, pub, flip(signature), signed), false);
  assert.equal(await subtle.verify({ name: "ECDSA", hash: "SHA-384" }, pub, signature, signed), false);
  const priv = await subtle.importKey("jwk", { ...jwk, d: "jpsQnnGQmL-YBIffH1136cspYG6-0iY7X1fCE9-E9LI" }, { name: "ECDSA", namedCurve: "P-256" }, true, ["sign"]);
  const own = await subtle.sign(alg, priv, signed);
  assert.equal(own.byteLength, 64);
  assert.equal(await subtle.verify(alg, pub, own, signed), true);
});

test("ECDSA: all curves and hashes, and a signature of OpenSSL", async () => {
  for (const [namedCurve, data] of Object.entries(fixture.ec)) {
    const alg = { name: "ECDSA", namedCurve };
    const priv = await subtle.importKey("pkcs8", b64(data.pkcs8), alg, true, ["sign"]);
    const pub = await subtle.importKey("spki", b64(data.spki), alg, true, ["verify"]);
    assert.equal(await subtle.verify({ name: "ECDSA", hash: data.hash }, pub, b64(data.signature), message), true, namedCurve);
    for (const hash of hashes) {
      const signature = await subtle.sign({ name: "ECDSA", hash: { name: hash } }, priv, message);
      assert.equal(signature.byteLength, b64(data.signature).length);
      assert.equal(await subtle.verify({ name: "ECDSA", hash }, pub, signature, message), true, `${namedCurve} ${hash}`);
      assert.equal(await subtle.verify({ name: "ECDSA", hash }, pub, flip(signature, 40), message), false);
    }
    const params = { name: "ECDSA", hash: "SHA-256" };
    for (const n of [0, 1, 63, 65, 200]) assert.equal(await subtle.verify(params, pub, new Uint8Array(n), message), false, n);
    assert.equal(await subtle.verify(params, pub, new Uint8Array(b64(data.signature).length), message), false, "zeros");
    assert.equal(await subtle.verify(params, pub, new Uint8Array(b64(data.signature).length).fill(255), message), false, "more than the order");
    await assert.rejects(subtle.sign(params, pub, message), "InvalidAccessError");
    await assert.rejects(subtle.verify(params, priv, b64(data.signature), message), "InvalidAccessError");
    await assert.rejects(subtle.sign("ECDSA", priv, message), TypeError);
    await assert.rejects(subtle.sign({ name: "ECDSA", hash: "MD5" }, priv, message), "NotSupportedError");
  }
});

test("elliptic curves: every format", async () => {
  for (const [namedCurve, data] of Object.entries(fixture.ec)) {
    for (const [name, usage] of [["ECDSA", "sign"], ["ECDH", "deriveKey"]]) {
      const alg = { name, namedCurve };
      const publicUsages = name === "ECDSA" ? ["verify"] : [];
      const priv = await subtle.importKey("jwk", data.jwk, alg, true, [usage]);
      const pub = await subtle.importKey("raw", b64(data.raw), alg, true, publicUsages);
      assert.deepEqual(new Uint8Array(await subtle.exportKey("pkcs8", priv)), b64(data.pkcs8), namedCurve);
      assert.deepEqual(new Uint8Array(await subtle.exportKey("spki", pub)), b64(data.spki));
      const compressed = await subtle.importKey("raw", b64(data.compressed), alg, true, publicUsages);
      assert.deepEqual(new Uint8Array(await subtle.exportKey("raw", compressed)), b64(data.raw));
      const { x, y, d } = data.jwk;
      assert.deepEqual(Object.entries(await subtle.exportKey("jwk", priv)), [["crv", namedCurve], ["d", d], ["ext", true], ["key_ops", [usage]], ["kty", "EC"], ["x", x], ["y", y]]);
      assert.deepEqual(Object.entries(await subtle.exportKey("jwk", pub)), [["crv", namedCurve], ["ext", true], ["key_ops", publicUsages], ["kty", "EC"], ["x", x], ["y", y]]);
      assert.deepEqual([priv.algorithm, Object.keys(priv.algorithm)], [{ name, namedCurve }, ["name", "namedCurve"]]);
      await assert.rejects(subtle.exportKey("raw", priv), "InvalidAccessError");
      await assert.rejects(subtle.exportKey("pkcs8", pub), "InvalidAccessError");
      await assert.rejects(subtle.exportKey("spki", priv), "InvalidAccessError");
      const other = namedCurve === "P-256" ? "P-384" : "P-256";
      await assert.rejects(subtle.importKey("jwk", data.jwk, { name, namedCurve: other }, true, [usage]), "DataError");
      await assert.rejects(subtle.importKey("pkcs8", b64(data.pkcs8), { name, namedCurve: other }, true, [usage]), "DataError");
      await assert.rejects(subtle.importKey("spki", b64(data.spki), { name, namedCurve: other }, true, publicUsages), "DataError");
      await assert.rejects(subtle.importKey("raw", b64(data.raw), { name, namedCurve: other }, true, publicUsages), "DataError");
      await assert.rejects(subtle.importKey("raw", flip(b64(data.raw), 20), alg, true, publicUsages), "DataError", "not on the curve");
      await assert.rejects(subtle.importKey("raw", b64(data.raw).subarray(1), alg, true, publicUsages), "DataError");
      await assert.rejects(subtle.importKey("raw", new Uint8Array([0]), alg, true, publicUsages), "DataError", "the point at infinity");
      await assert.rejects(subtle.importKey("spki", new Uint8Array([...b64(data.spki), 0]), alg, true, publicUsages), "DataError");
      await assert.rejects(subtle.importKey("spki", b64(fixture.rsa.spki), alg, true, publicUsages), "DataError");
      const bad = { kty: "OKP", crv: other, x: x.slice(1), y: y + "AAAA", d: d.slice(2), use: name === "ECDSA" ? "enc" : "sig", key_ops: [], ext: false };
      for (const [member, value] of Object.entries(bad)) await assert.rejects(subtle.importKey("jwk", { ...data.jwk, [member]: value }, alg, true, [usage]), "DataError", member);
      await assert.rejects(subtle.importKey("jwk", { ...data.jwk, d: x }, alg, true, [usage]), "DataError", "another private key");
      await assert.rejects(subtle.importKey("jwk", { ...data.jwk, x: undefined }, alg, true, [usage]), "DataError");
    }
    const ecdsa = { name: "ECDSA", namedCurve };
    await assert.rejects(subtle.importKey("jwk", { ...data.jwk, alg: "RS256" }, ecdsa, true, ["sign"]), "DataError");
    assert.equal((await subtle.importKey("jwk", { ...data.jwk, alg: "anything" }, { name: "ECDH", namedCurve }, true, ["deriveBits"])).type, "private");
  }
  for (const name of ["ECDSA", "ECDH"]) {
    for (const namedCurve of ["P-257", "p-256", ""]) {
      await assert.rejects(subtle.generateKey({ name, namedCurve }, true, name === "ECDSA" ? ["sign"] : ["deriveBits"]), "NotSupportedError", namedCurve);
      await assert.rejects(subtle.importKey("raw", b64(fixture.ec["P-256"].raw), { name, namedCurve }, true, []), "DataError");
    }
    await assert.rejects(subtle.generateKey({ name }, true, ["sign"]), TypeError);
    await assert.rejects(subtle.generateKey(name, true, ["sign"]), TypeError);
  }
});

test("ECDH: SP 800-56A vectors, and OpenSSL", async () => {
  const x = (h) => btoa(String.fromCharCode(...un(h))).replace(/\+/g, "-").replace(/\//g, "_").replace(/=/g, "");
  const alg = { name: "ECDH", namedCurve: "P-256" };
  const priv = await subtle.importKey("jwk", {
    kty: "EC", crv: "P-256", d: x("7d7dc5f71eb29ddaf80d6214632eeae03d9058af1fb6d22ed80badb62bc1a534"),
    x: x("ead218590119e8876b29146ff89ca61770c4edbbf97d38ce385ed281d8a6b230"), y: x("28af61281fd35e2fa7002523acc85a429cb06ee6648325389f59edfce1405141"),
  }, alg, false, ["deriveBits"]);
  const pub = await subtle.importKey("raw", un("04700c48f77f56584c5cc632ca65640db91b6bacce3a4df6b42ce7cc838833d287db71e509e3fd9b060ddb20ba5c51dcc5948d46fbf640dfe0441782cab85fa4ac"), alg, true, []);
  assert.equal(hex(await subtle.deriveBits({ name: "ECDH", public: pub }, priv, 256)), "46fc62106420ff012e54a434fbdd2d25ccc5852060561e68040dd7778997bd7b");
  for (const [namedCurve, data] of Object.entries(fixture.ec)) {
    const own = await subtle.importKey("jwk", data.jwk, { name: "ECDH", namedCurve }, true, ["deriveBits", "deriveKey"]);
    const peer = await subtle.importKey("jwk", data.peer, { name: "ECDH", namedCurve }, true, []);
    const secret = b64(data.secret);
    assert.deepEqual(new Uint8Array(await subtle.deriveBits({ name: "ECDH", public: peer }, own)), secret);
    assert.deepEqual(new Uint8Array(await subtle.deriveBits({ name: "ECDH", public: peer }, own, null)), secret);
    assert.deepEqual(new Uint8Array(await subtle.deriveBits({ name: "ECDH", public: peer }, own, 128)), secret.slice(0, 16));
    const part = new Uint8Array(await subtle.deriveBits({ name: "ECDH", public: peer }, own, 13));
    assert.deepEqual([...part], [secret[0], secret[1] & 0xf8]);
    await assert.rejects(subtle.deriveBits({ name: "ECDH", public: peer }, own, secret.length * 8 + 8), "OperationError");
    await assert.rejects(subtle.deriveBits({ name: "ECDH", public: own }, own, 128), "InvalidAccessError");
    await assert.rejects(subtle.deriveBits({ name: "ECDH", public: peer }, peer, 128), "InvalidAccessError");
    if (namedCurve !== "P-256") await assert.rejects(subtle.deriveBits({ name: "ECDH", public: pub }, own, 128), "InvalidAccessError", "another curve");
    const aes = await subtle.deriveKey({ name: "ECDH", public: peer }, own, { name: "AES-GCM", length: 256 }, true, ["encrypt"]);
    assert.deepEqual(new Uint8Array(await subtle.exportKey("raw", aes)), secret.slice(0, 32));
    const x25519 = await subtle.importKey("jwk", { kty: "OKP", crv: "X25519", x: fixture.x25519.jwk.x }, "X25519", true, []);
    await assert.rejects(subtle.deriveBits({ name: "ECDH", public: x25519 }, own, 128), "InvalidAccessError", "another algorithm");
  }
});

const rsa = (format, name, hash, usages) => subtle.importKey(format, format === "jwk" ? fixture.rsa.jwk : b64(fixture.rsa[format]), { name, hash }, true, usages);

test("RSASSA-PKCS1-v1_5: the very signatures of OpenSSL", async () => {
  for (const hash of hashes) {
    const priv = await rsa("pkcs8", "RSASSA-PKCS1-v1_5", hash, ["sign"]);
    const pub = await rsa("spki", "RSASSA-PKCS1-v1_5", hash, ["verify"]);
    const expected = b64(fixture.rsa.pkcs1[hash]);
    assert.deepEqual(new Uint8Array(await subtle.sign("RSASSA-PKCS1-v1_5", priv, message)), expected, hash);
    assert.equal(await subtle.verify("rsassa-pkcs1-V1_5", pub, expected, message), true);
    assert.equal(await subtle.verify("RSASSA-PKCS1-v1_5", pub, flip(expected, 100), message), false);
    assert.equal(await subtle.verify("RSASSA-PKCS1-v1_5", pub, expected.subarray(1), message), false);
    assert.equal(await subtle.verify("RSASSA-PKCS1-v1_5", pub, new Uint8Array(0), message), false);
    assert.equal(await subtle.verify("RSASSA-PKCS1-v1_5", pub, expected, text("another")), false);
    await assert.rejects(subtle.sign("RSA-PSS", priv, message), TypeError, "no saltLength");
    await assert.rejects(subtle.sign({ name: "RSA-PSS", saltLength: 0 }, priv, message), "InvalidAccessError", "another algorithm");
    await assert.rejects(subtle.sign("RSASSA-PKCS1-v1_5", pub, message), "InvalidAccessError");
  }
});

test("RSA-PSS: salts of every length", async () => {
  for (const hash of hashes) {
    const priv = await rsa("jwk", "RSA-PSS", hash, ["sign"]);
    const pub = await rsa("spki", "RSA-PSS", hash, ["verify"]);
    const none = { name: "RSA-PSS", saltLength: 0 };
    const unsalted = b64(fixture.rsa.pss0[hash]);
    assert.deepEqual(new Uint8Array(await subtle.sign(none, priv, message)), unsalted, `${hash}: without a salt there is one signature`);
    assert.equal(await subtle.verify(none, pub, unsalted, message), true);
    assert.equal(await subtle.verify(none, pub, flip(unsalted, 9), message), false);
    assert.equal(await subtle.verify(none, pub, b64(fixture.rsa.pss20[hash]), message), false, "another length of salt");
    assert.equal(await subtle.verify({ name: "RSA-PSS", saltLength: 20 }, pub, b64(fixture.rsa.pss20[hash]), message), true);
    assert.equal(await subtle.verify({ name: "RSA-PSS", saltLength: 20 }, pub, unsalted, message), false);
    assert.equal(await subtle.verify({ name: "RSA-PSS", saltLength: 21 }, pub, b64(fixture.rsa.pss20[hash]), message), false);
    const salted = await subtle.sign({ name: "RSA-PSS", saltLength: 32 }, priv, message);
    assert.equal(await subtle.verify({ name: "RSA-PSS", saltLength: 32 }, pub, salted, message), true);
    assert.equal(await subtle.verify({ name: "RSA-PSS", saltLength: 32 }, pub, salted, text("another")), false);
    await assert.rejects(subtle.sign({ name: "RSA-PSS", saltLength: 4294967295 }, priv, message), "OperationError");
    assert.equal(await subtle.verify({ name: "RSA-PSS", saltLength: 4294967295 }, pub, salted, message), false);
    await assert.rejects(subtle.sign({ name: "RSA-PSS", saltLength: -1 }, priv, message), TypeError);
  }
});

test("RSA-OAEP", async () => {
  for (const hash of hashes) {
    const priv = await rsa("pkcs8", "RSA-OAEP", hash, ["decrypt"]);
    const pub = await rsa("spki", "RSA-OAEP", hash, ["encrypt"]);
    const labelled = { name: "RSA-OAEP", label: text("label") };
    assert.equal(hex(await subtle.decrypt(labelled, priv, b64(fixture.rsa.oaep[hash]))), hex(message), hash);
    await assert.rejects(subtle.decrypt("RSA-OAEP", priv, b64(fixture.rsa.oaep[hash])), "OperationError", "without the label");
    await assert.rejects(subtle.decrypt(labelled, priv, flip(b64(fixture.rsa.oaep[hash]), 5)), "OperationError");
    await assert.rejects(subtle.decrypt(labelled, priv, new Uint8Array(0)), "OperationError");
    const size = { "SHA-1": 20, "SHA-256": 32, "SHA-384": 48, "SHA-512": 64 }[hash];
    for (const n of [0, 1, 256 - 2 * size - 2]) {
      const out = await subtle.encrypt({ name: "RSA-OAEP" }, pub, new Uint8Array(n).fill(3));
      assert.equal(out.byteLength, 256);
      assert.deepEqual(new Uint8Array(await subtle.decrypt("RSA-OAEP", priv, out)), new Uint8Array(n).fill(3));
    }
    await assert.rejects(subtle.encrypt("RSA-OAEP", pub, new Uint8Array(256 - 2 * size - 1)), "OperationError", "too long");
    await assert.rejects(subtle.encrypt("RSA-OAEP", priv, message), "InvalidAccessError");
    await assert.rejects(subtle.decrypt("RSA-OAEP", pub, message), "InvalidAccessError");
  }
});

test("RSA: every format", async () => {
  const algs = { "RSASSA-PKCS1-v1_5": ["RS1", "RS256", "RS384", "RS512"], "RSA-PSS": ["PS1", "PS256", "PS384", "PS512"], "RSA-OAEP": ["RSA-OAEP", "RSA-OAEP-256", "RSA-OAEP-384", "RSA-OAEP-512"] };
  for (const [name, list] of Object.entries(algs)) {
    const [privateUsage, publicUsage] = name === "RSA-OAEP" ? ["decrypt", "encrypt"] : ["sign", "verify"];
    for (const [i, hash] of hashes.entries()) {
      const priv = await rsa("pkcs8", name, hash, [privateUsage]);
      const pub = await rsa("spki", name, hash, [publicUsage]);
      const jwk = await subtle.exportKey("jwk", priv);
      const { n, e, d, p, q, dp, dq, qi } = fixture.rsa.jwk;
      assert.deepEqual(Object.entries(jwk), Object.entries({ alg: list[i], d, dp, dq, e, ext: true, key_ops: [privateUsage], kty: "RSA", n, p, q, qi }));
      assert.deepEqual(Object.entries(await subtle.exportKey("jwk", pub)), Object.entries({ alg: list[i], e, ext: true, key_ops: [publicUsage], kty: "RSA", n }));
      assert.equal((await subtle.importKey("jwk", jwk, { name, hash }, true, [privateUsage])).type, "private");
      const other = list[(i + 1) % 4];
      await assert.rejects(subtle.importKey("jwk", { ...jwk, alg: other }, { name, hash }, true, [privateUsage]), "DataError");
      assert.deepEqual(new Uint8Array(await subtle.exportKey("pkcs8", priv)), b64(fixture.rsa.pkcs8));
      assert.deepEqual(new Uint8Array(await subtle.exportKey("spki", pub)), b64(fixture.rsa.spki));
      assert.deepEqual(Object.entries(priv.algorithm), [["name", name], ["modulusLength", 2048], ["publicExponent", new Uint8Array([1, 0, 1])], ["hash", { name: hash }]]);
      assert.equal(priv.algorithm.publicExponent.constructor, Uint8Array);
    }
    const alg = { name, hash: "SHA-256" };
    const priv = await rsa("pkcs8", name, "SHA-256", [privateUsage]);
    await assert.rejects(subtle.exportKey("spki", priv), "InvalidAccessError");
    await assert.rejects(subtle.exportKey("raw", priv), "NotSupportedError");
    await assert.rejects(subtle.importKey("raw", b64(fixture.rsa.spki), alg, true, [publicUsage]), "NotSupportedError");
    await assert.rejects(subtle.importKey("spki", b64(fixture.rsa.spki), alg, true, [privateUsage]), "SyntaxError");
    await assert.rejects(subtle.importKey("pkcs8", b64(fixture.rsa.pkcs8), alg, true, [publicUsage]), "SyntaxError");
    await assert.rejects(subtle.importKey("pkcs8", b64(fixture.rsa.pkcs8), alg, true, []), "SyntaxError");
    await assert.rejects(subtle.importKey("spki", b64(fixture.ec["P-256"].spki), alg, true, [publicUsage]), "DataError");
    await assert.rejects(subtle.importKey("pkcs8", b64(fixture.ec["P-256"].pkcs8), alg, true, [privateUsage]), "DataError");
    await assert.rejects(subtle.importKey("pkcs8", new Uint8Array([...b64(fixture.rsa.pkcs8), 1]), alg, true, [privateUsage]), "DataError");
    await assert.rejects(subtle.importKey("pkcs8", flip(b64(fixture.rsa.pkcs8), 600), alg, true, [privateUsage]), "DataError", "numbers that do not fit");
    const bad = { kty: "oct", n: undefined, e: undefined, p: "AAAA", qi: "!", dp: undefined, use: name === "RSA-OAEP" ? "sig" : "enc", key_ops: [privateUsage, privateUsage], ext: false };
    for (const [member, value] of Object.entries(bad)) {
      await assert.rejects(subtle.importKey("jwk", { ...fixture.rsa.jwk, [member]: value }, alg, true, [privateUsage]), "DataError", member);
    }
    await assert.rejects(subtle.importKey("jwk", { ...fixture.rsa.jwk, oth: [{ r: "AA", d: "AA", t: "AA" }] }, alg, true, [privateUsage]), "NotSupportedError");
    await assert.rejects(subtle.importKey("jwk", fixture.rsa.jwk, { name }, true, [privateUsage]), TypeError, "no hash");
  }
});

test("RSA: keys are made, within bounds", async () => {
  const alg = { name: "RSA-PSS", modulusLength: 2048, publicExponent: new Uint8Array([1, 0, 1]), hash: "SHA-256" };
  const pair = await subtle.generateKey(alg, false, ["sign", "verify"]);
  assert.deepEqual(Object.keys(pair), ["privateKey", "publicKey"]);
  assert.deepEqual([pair.privateKey.usages, pair.publicKey.usages, pair.privateKey.extractable, pair.publicKey.extractable], [["sign"], ["verify"], false, true]);
  assert.equal(pair.publicKey.algorithm.modulusLength, 2048);
  const signature = await subtle.sign({ name: "RSA-PSS", saltLength: 32 }, pair.privateKey, message);
  assert.equal(await subtle.verify({ name: "RSA-PSS", saltLength: 32 }, pair.publicKey, signature, message), true);
  await assert.rejects(subtle.exportKey("pkcs8", pair.privateKey), "InvalidAccessError");
  for (const modulusLength of [0, 512, 1023, 4097, 16384, 4294967295]) await assert.rejects(subtle.generateKey({ ...alg, modulusLength }, false, ["sign"]), "OperationError", modulusLength);
  for (const publicExponent of [[], [0], [1], [1, 0, 0], [1, 0, 0, 0, 1], [3]]) {
    await assert.rejects(subtle.generateKey({ ...alg, publicExponent: new Uint8Array(publicExponent) }, false, ["sign"]), "OperationError", publicExponent);
  }
  for (const publicExponent of [undefined, [1, 0, 1], new ArrayBuffer(3), new Uint16Array(2)]) await assert.rejects(subtle.generateKey({ ...alg, publicExponent }, false, ["sign"]), TypeError);
  for (const modulusLength of [undefined, -1, NaN, 2 ** 32]) await assert.rejects(subtle.generateKey({ ...alg, modulusLength }, false, ["sign"]), TypeError);
  await assert.rejects(subtle.generateKey(alg, false, ["verify"]), "SyntaxError", "a private key without usages");
  await assert.rejects(subtle.generateKey(alg, false, ["encrypt"]), "SyntaxError");
});
